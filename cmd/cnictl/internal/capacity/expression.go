package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"cnictl/daemon/lazy"
	"cnictl/tui/query"
)

// compile compiles a maxPodsExpression as nodeadm does: CEL over default_enis, ips_per_eni
// and max_pods, whose result is an integer above 0. It reads the part of CEL that calculates: integers,
// doubles and booleans with their operators, int() and double(). A test compares it with cel-go, which
// would make every command start a tenth slower.
func compile(text string) (func(defaultENIs, ipsPerENI, maxPods int) (int, error), error) {
	run := func(inputs ...int) (celValue, error) {
		c := &expression{inputs: inputs, rest: text, column: 1}
		c.advance()
		out := c.conditional()
		if c.token != "" {
			c.fail(c.at, "Syntax error: unexpected '%s'", c.token)
		}
		return out, c.err
	}
	if _, err := run(1, 1, 1); err != nil {
		return nil, err
	}
	return func(defaultENIs, ipsPerENI, maxPods int) (int, error) {
		out, err := run(defaultENIs, ipsPerENI, maxPods)
		if err = cmp.Or(err, out.err); err != nil {
			return 0, err
		}
		whole := out.convert("int")
		if whole.err != nil || whole.n < 1 || whole.n > math.MaxInt32 { // that of a boolean is 0
			return 0, fmt.Errorf("the result is %v: want an integer above 0", out)
		}
		return int(whole.n), nil
	}, nil
}

// celInputs are the variables, in the order of expression.inputs.
var celInputs = []string{"default_enis", "ips_per_eni", "max_pods"}

// celValue is a value of an expression. One that could not be calculated has a type all the same.
type celValue struct {
	kind string // int, double, bool
	n    int64
	d    float64
	b    bool
	err  error
}

func celInt(n int64) celValue { return celValue{kind: "int", n: n} }

func celDouble(d float64) celValue { return celValue{kind: "double", d: d} }

func celBool(b bool) celValue { return celValue{kind: "bool", b: b} }

func celError(kind, why string) celValue { return celValue{kind: kind, err: errors.New(why)} }

func (v celValue) String() string {
	switch v.kind {
	case "int":
		return strconv.FormatInt(v.n, 10)
	case "double":
		return strconv.FormatFloat(v.d, 'g', -1, 64)
	}
	return strconv.FormatBool(v.b)
}

// convert converts a number. A fraction is cut off.
func (v celValue) convert(kind string) celValue {
	switch {
	case v.err != nil || v.kind == kind:
		return celValue{kind, v.n, v.d, v.b, v.err}
	case kind == "double":
		return celDouble(float64(v.n))
	case v.d > math.MinInt64 && v.d < math.MaxInt64:
		return celInt(int64(v.d))
	}
	return celError("int", "integer overflow")
}

// expression calculates an expression while it reads it. After the first error it reads no further.
type expression struct {
	inputs []int
	rest   string
	column int    // of rest, from 1
	token  string // "" at the end
	at     int    // column of token
	err    error
}

var celToken = lazy.Regexp(`^(?:0x[[:xdigit:]]+|\d*\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|&&|\|\||[=!<>]=|[-+*/%<>!?:()])`)

func (c *expression) fail(column int, format string, args ...any) celValue {
	if c.err == nil {
		c.err = fmt.Errorf("column %d: "+format, append([]any{column}, args...)...)
	}
	c.rest, c.token = "", ""
	return celValue{}
}

func (c *expression) advance() {
	blank := len(c.rest) - len(strings.TrimLeft(c.rest, " \t\r\n\f"))
	c.rest, c.at = c.rest[blank:], c.column+blank
	if c.token = celToken().FindString(c.rest); c.token == "" && c.rest != "" {
		c.fail(c.at, "Syntax error: unexpected '%.1s'", c.rest)
		return
	}
	c.rest, c.column = c.rest[len(c.token):], c.at+len(c.token)
}

// take reads the token if it is one of the operators.
func (c *expression) take(operators ...string) (operator string, column int) {
	for _, o := range operators {
		if c.token == o {
			column = c.at
			c.advance()
			return o, column
		}
	}
	return "", 0
}

func (c *expression) expect(token string) {
	if o, _ := c.take(token); o == "" {
		c.fail(c.at, "Syntax error: '%s' is missing", token)
	}
}

func (c *expression) mismatch(column int, function string, args ...celValue) celValue {
	kinds := make([]string, len(args))
	for i, a := range args {
		kinds[i] = a.kind
	}
	return c.fail(column, "found no matching overload for '%s' applied to '(%s)'", function, strings.Join(kinds, ", "))
}

func (c *expression) conditional() celValue {
	is := c.or()
	o, at := c.take("?")
	if o == "" {
		return is
	}
	yes := c.or()
	c.expect(":")
	no := c.conditional()
	switch {
	case is.kind != "bool" || yes.kind != no.kind:
		return c.mismatch(at, "_?_:_", is, yes, no)
	case is.err != nil:
		return celValue{kind: yes.kind, err: is.err}
	case is.b:
		return yes
	}
	return no
}

func (c *expression) or() celValue { return c.logical(c.and, "||", true) }

func (c *expression) and() celValue { return c.logical(c.relation, "&&", false) }

// logical reads operands of which any that has the given value decides, even if others fail.
func (c *expression) logical(operand func() celValue, operator string, decides bool) celValue {
	a := operand()
	for {
		o, at := c.take(operator)
		if o == "" {
			return a
		}
		b := operand()
		switch {
		case a.kind != "bool" || b.kind != "bool":
			return c.mismatch(at, "_"+o+"_", a, b)
		case a.err == nil && a.b == decides, b.err == nil && b.b == decides:
			a = celBool(decides)
		case a.err == nil:
			a = b
		}
	}
}

func (c *expression) relation() celValue { return c.chain(c.sum, "<=", ">=", "<", ">", "==", "!=") }

func (c *expression) sum() celValue { return c.chain(c.product, "+", "-") }

func (c *expression) product() celValue { return c.chain(c.unary, "*", "/", "%") }

// chain reads operands with operators of one rank between them.
func (c *expression) chain(operand func() celValue, operators ...string) celValue {
	a := operand()
	for {
		o, at := c.take(operators...)
		if o == "" {
			return a
		}
		b := operand()
		kind := a.kind
		if strings.ContainsAny(o, "<>=") {
			kind = "bool"
		}
		switch {
		case a.kind != b.kind, kind != "bool" && a.kind == "bool", kind == "double" && o == "%":
			return c.mismatch(at, "_"+o+"_", a, b)
		case a.err != nil || b.err != nil:
			a = celValue{kind: kind, err: cmp.Or(a.err, b.err)}
		case kind == "bool":
			a = compared(o, a, b)
		case kind == "int":
			a = calculated(o, a.n, b.n)
		default:
			a = celDouble(map[string]float64{"+": a.d + b.d, "-": a.d - b.d, "*": a.d * b.d, "/": a.d / b.d}[o])
		}
	}
}

// compared applies a relation to two values of the same type. NaN is unequal to all, and not ordered.
func compared(operator string, a, b celValue) celValue {
	less, greater := a.n < b.n || a.d < b.d || !a.b && b.b, a.n > b.n || a.d > b.d || a.b && !b.b
	equal := !less && !greater && !math.IsNaN(a.d) && !math.IsNaN(b.d)
	return celBool(map[string]bool{"==": equal, "!=": !equal, "<": less, "<=": less || equal, ">": greater, ">=": greater || equal}[operator])
}

// calculated applies an arithmetic operator to two integers.
func calculated(operator string, a, b int64) celValue {
	var n int64
	overflow := a == math.MinInt64 && b == -1 // of a quotient
	switch operator {
	case "+":
		n = a + b
		overflow = b != 0 && (n > a) != (b > 0)
	case "-":
		n = a - b
		overflow = b != 0 && (n < a) != (b > 0)
	case "*":
		n = a * b
		overflow = overflow || a != 0 && n/a != b
	case "/":
		if b == 0 {
			return celError("int", "division by zero")
		}
		n = a / b
	case "%":
		if b == 0 {
			return celError("int", "modulus by zero")
		}
		n = a % b
	}
	if overflow {
		return celError("int", "integer overflow")
	}
	return celInt(n)
}

func (c *expression) unary() celValue {
	o, at := c.take("!", "-")
	if o == "" {
		return c.primary("")
	}
	odd := true
	for c.token == o {
		c.advance()
		odd = !odd
	}
	if o == "-" && odd && isNumber(c.token) {
		return c.primary("-")
	}
	v := c.primary("")
	switch {
	case !odd:
	case (o == "!") != (v.kind == "bool"):
		return c.mismatch(at, o+"_", v)
	case v.err != nil:
	case v.kind == "int":
		return calculated("-", 0, v.n)
	default:
		v.d, v.b = -v.d, !v.b
	}
	return v
}

func isNumber(token string) bool {
	return strings.Trim(token[:min(1, len(token))], ".0123456789") == "" && token != ""
}

func (c *expression) primary(sign string) celValue {
	word, at := c.token, c.at
	c.advance()
	switch {
	case c.err != nil:
		return celValue{}
	case isNumber(word):
		return c.number(at, sign+word)
	case word == "(":
		v := c.conditional()
		c.expect(")")
		return v
	case word == "true" || word == "false":
		return celBool(word == "true")
	case strings.Trim(word, "&|=!<>-+*/%?:()") == "":
		return c.fail(at, "Syntax error: an operand is missing")
	case c.token == "(":
		return c.call(at, word)
	}
	for i, name := range celInputs {
		if name == word {
			return celInt(int64(c.inputs[i]))
		}
	}
	hint := ""
	if near := query.Near(word, celInputs); len(near) > 0 {
		hint = " (did you mean '" + near[0] + "'?)"
	}
	return c.fail(at, "undeclared reference to '%s'%s", word, hint)
}

// call reads the argument of a conversion.
func (c *expression) call(at int, function string) celValue {
	if function != "int" && function != "double" {
		return c.fail(at, "%s() is not available, only int() and double()", function)
	}
	c.expect("(")
	v := c.conditional()
	c.expect(")")
	if v.kind == "bool" {
		return c.mismatch(at, function, v)
	}
	return v.convert(function)
}

func (c *expression) number(at int, text string) celValue {
	if digits, hex := strings.CutPrefix(strings.TrimPrefix(text, "-"), "0x"); hex {
		n, err := strconv.ParseInt(strings.TrimSuffix(text, "0x"+digits)+digits, 16, 64)
		if err != nil {
			return c.fail(at, "invalid int literal")
		}
		return celInt(n)
	}
	if strings.ContainsAny(text, ".eE") {
		d, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return c.fail(at, "invalid double literal")
		}
		return celDouble(d)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return c.fail(at, "invalid int literal")
	}
	return celInt(n)
}
