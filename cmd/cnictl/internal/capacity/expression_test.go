package capacity

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
)

// byCEL evaluates an expression with cel-go, as nodeadm does.
func byCEL(text string, inputs ...int) (n int, compiles bool, _ error) {
	env, err := cel.NewEnv(cel.Variable(celInputs[0], cel.IntType), cel.Variable(celInputs[1], cel.IntType), cel.Variable(celInputs[2], cel.IntType))
	if err != nil {
		return 0, false, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return 0, false, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return 0, false, err
	}
	out, _, err := program.Eval(map[string]any{celInputs[0]: inputs[0], celInputs[1]: inputs[1], celInputs[2]: inputs[2]})
	if err != nil {
		return 0, true, err
	}
	result, ok := out.ConvertToType(cel.IntType).Value().(int64)
	if !ok || result < 1 || result > 1<<31-1 {
		return 0, true, fmt.Errorf("the result is %v", out.Value())
	}
	return int(result), true, nil
}

// same fails the test unless both evaluators agree on an expression.
func same(t *testing.T, text string, inputs ...int) {
	t.Helper()
	want, compiles, wantErr := byCEL(text, inputs...)
	run, err := compile(text)
	if (err == nil) != compiles {
		t.Errorf("%s: %v, cel-go: %v", text, err, wantErr)
		return
	}
	if err != nil {
		return
	}
	if got, err := run(inputs[0], inputs[1], inputs[2]); got != want || (err == nil) != (wantErr == nil) {
		t.Errorf("%s with %v: %d, %v; cel-go: %d, %v", text, inputs, got, err, want, wantErr)
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"(default_enis - 1) * (ips_per_eni - 1) + 2", "max_pods < 30 ? max_pods : 30", "max_pods<10?10:max_pods<20?20:30",
		"int(double(max_pods) * 0.8)", "double(max_pods) * .5", "-max_pods + 200", "--max_pods", "!(max_pods > 1) ? 1 : 2", "!!5", "--5",
		"max_pods / 0", "max_pods % 0", "true", "false || max_pods / 0 > 1 || true ? 7 : 8", "max_pods / 0 > 1 && false ? 7 : 8",
		"9223372036854775807 + 1", "-9223372036854775808 / -1", "9223372036854775808", "-9223372036854775808 + 9", "0x1F", "-0x1f + 40", "1e2", "1.5e1", "010",
		"int(1e300)", "0.0 / 0.0 == 0.0 / 0.0 ? 1 : 2", "0.0 / 0.0 < 1.0 ? 1 : 2", "false < true ? 3 : 4", "1 < 2 < 3", "1 ? 2 : 3", "true ? 1 : 2.0",
		"1 + 1.0", "1.0 % 2.0", "1 == 1.0", "int(true)", "int(int(4))", "double(3.7)", "int(1, 2)", "int()", "max_pods(1)", "a?b:c", "true ? true ? 1 : 2 : 3",
		"max_pod", "", " ", "1 +", "(1", "1)", "1 2", "1.", "1 = 2", "1..2", "é", "- -3", "-!true", "!-1", "1 ? : 2", "*3", "a b", "2*-3+9", "7 - -2",
		"\tmax_pods\n", "1 - 2 - 3 + 10", "100 / 10 / 5", "100 / (10 / 5)", "7 % 4 * 2", "2 + 3 * 4 == 14 && 1 < 2 || 1 / 0 > 0 ? 5 : 6", "2147483648",
	} {
		same(t, text, 3, 10, 29)
	}
}

// TestCompile_Random: both evaluators agree on expressions of all that compile reads.
func TestCompile_Random(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var grow func(depth int, kind string) string
	grow = func(depth int, kind string) string {
		if random.IntN(30) == 0 {
			kind = pick("int", "double", "bool") // perhaps of the wrong type
		}
		of := func(k string) string { return grow(depth-1, k) }
		if depth == 0 {
			return map[string]string{
				"int": pick("0", "1", "2", "7", "110", "9223372036854775807", "0x10", celInputs[0], celInputs[1], celInputs[2]), "double": pick("0.0", "1.5", "2e1", ".25", "1e300"),
				"bool": pick("true", "false"),
			}[kind]
		}
		switch n := random.IntN(6); {
		case n == 0:
			return "(" + of(kind) + ")"
		case n == 1:
			return of("bool") + " ? " + of(kind) + " : " + of(kind)
		case n == 2:
			return pick("-", "!") + of(kind)
		case kind == "bool" && n == 3:
			return of("bool") + pick(" && ", " || ") + of("bool")
		case kind == "bool":
			both := pick("int", "double", "bool")
			return of(both) + pick("<", "<=", ">", ">=", "==", "!=") + of(both)
		case n == 3:
			return kind + "(" + of(pick("int", "double")) + ")"
		}
		return of(kind) + pick("+", "-", "*", "/", "%") + of(kind)
	}
	for range 3000 {
		same(t, grow(random.IntN(5), "int"), random.IntN(16), random.IntN(51), random.IntN(737))
		if t.Failed() {
			break
		}
	}
}

// TestCompile_Column: an error says where.
func TestCompile_Column(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1 + max_pod": "column 5: undeclared reference to 'max_pod' (did you mean 'max_pods'?)", "1 + 2.0": "column 3: found no matching overload for '_+_' applied to '(int, double)'",
		"size('a')": "only int() and double()", "1 #": "column 3: Syntax error",
	} {
		if _, err := compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
