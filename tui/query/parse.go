package query

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a filter besides MaxText.
const (
	maxTerms  = 32
	maxRegexp = 256 // bytes
)

// Parse parses a filter: terms separated by blanks, all of which must match.
//
//	WORD            in any visible column, ignoring case
//	"TWO WORDS"     the same, with blanks; "" inside is one quote
//	re:EXPRESSION   a regular expression (RE2) on any visible column
//	KEY=VALUE       the column's text, where * matches any part, or its number; also KEY==VALUE
//	KEY!=VALUE      the opposite
//	KEY>N           and >=, <, <=: numbers, percentages and ages (90, 80%, 2h30m)
//	KEY = VALUE     and the other comparisons, with blanks around them
//	label:KEY       the label exists
//	label:KEY=VALUE and !=, with * as above
//	!TERM           the opposite of any of these
func Parse[T any](text string, o Options[T]) (*Filter[T], error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("filter: %d bytes long; the limit is %d", len(text), MaxText)
	}
	for i, r := range text {
		if bad, why := refused(text, i, r); bad {
			return nil, fmt.Errorf("filter, character %d: %s", column(text, i), why)
		}
	}
	f := &Filter[T]{label: o.Label}
	for _, c := range o.Columns {
		if o.Visible == nil && !c.Wide && !c.Named || contains(o.Visible, c.Name) {
			f.visible = append(f.visible, c)
		}
	}
	f.joined = joinedOf(f.visible)
	p := parser[T]{text: text, options: o}
	for p.blanks(); p.at < len(text); p.blanks() {
		start := p.at
		t, err := p.term()
		if err != nil {
			return nil, fmt.Errorf("filter, character %d: %w", column(text, start), err)
		}
		if f.terms = append(f.terms, t); len(f.terms) > maxTerms {
			return nil, fmt.Errorf("filter: more than %d terms", maxTerms)
		}
	}
	return f, nil
}

// joinedOf returns the Joined function of the columns; nil if one of them has none.
func joinedOf[T any](columns []Column[T]) (joined func(T) string) {
	for _, c := range columns {
		if joined = c.Joined; joined == nil {
			return nil
		}
	}
	return joined
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// refused reports characters that no cell contains.
func refused(text string, i int, r rune) (bool, string) {
	if r == utf8.RuneError {
		if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
			return true, "invalid UTF-8"
		}
	}
	if r != '\t' && !strconv.IsPrint(r) {
		return true, "an unprintable character (" + strings.Trim(strconv.QuoteRuneToASCII(r), "'") + ")"
	}
	return false, ""
}

// column converts a byte offset to a character position, starting at 1.
func column(text string, at int) int { return utf8.RuneCountInString(text[:at]) + 1 }

type parser[T any] struct {
	text    string
	at      int
	options Options[T]
}

func (p *parser[T]) blanks() {
	for p.at < len(p.text) && isBlank(p.text[p.at]) {
		p.at++
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// eat consumes a prefix.
func (p *parser[T]) eat(prefix string) bool {
	if strings.HasPrefix(p.text[p.at:], prefix) {
		p.at += len(prefix)
		return true
	}
	return false
}

func (p *parser[T]) term() (term[T], error) {
	t := term[T]{not: p.eat("!")}
	var err error
	switch {
	case p.at == len(p.text) || isBlank(p.text[p.at]):
		return t, errors.New("! needs a term, as in !WORD")
	case p.eat("re:"):
		t.kind = pattern
		err = p.pattern(&t)
	case p.eat("label:"):
		t.kind = label
		err = p.label(&t)
	default:
		begin := p.at
		t.key = p.name("")
		if t.op = p.spaced(); t.op == "" {
			p.at = begin
			t.key = ""
			if err = p.notAnOperator(); err == nil {
				t.text, err = p.value()
			}
			break
		}
		t.kind = field
		err = p.field(&t)
	}
	t.fold()
	return t, err
}

// fold prepares the text for comparisons.
func (t *term[T]) fold() {
	t.lower = strings.ToLower(t.text)
	t.ascii = true
	for i := range len(t.lower) {
		if t.lower[i] >= utf8.RuneSelf {
			t.ascii = false
		}
	}
}

// name consumes everything up to an operator, a quote or a blank.
func (p *parser[T]) name(also string) string {
	start := p.at
	for p.at < len(p.text) && !isBlank(p.text[p.at]) && !strings.ContainsRune(`=!<>"`+also, rune(p.text[p.at])) {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *parser[T]) operator() string {
	if p.eat("==") { // as in kubectl's selectors
		return "="
	}
	for _, op := range []string{"!=", ">=", "<=", "=", ">", "<"} {
		if p.eat(op) {
			return op
		}
	}
	return ""
}

// spaced consumes an operator that may have blanks around it, as in free < 5. After an equals sign
// without one before it, a blank ends an empty value.
func (p *parser[T]) spaced() string {
	before := p.at
	p.blanks()
	apart := p.at > before
	op := p.operator()
	switch {
	case op == "":
		p.at = before
	case apart || op != "=" && op != "!=":
		p.blanks()
	}
	return op
}

// operators are the characters of operators, including those of other languages. A value that
// begins with one must be quoted.
const operators = "=<>~!"

// notAnOperator rejects a word like free~0 or state:ok: its author means a column, and as a word
// it would match nothing.
func (p *parser[T]) notAnOperator() error {
	rest := p.text[p.at:]
	end := strings.IndexAny(rest, "~:! \t\"")
	if end <= 0 || !strings.ContainsRune("~:!", rune(rest[end])) {
		return nil
	}
	c, ok := Find(p.options.Columns, strings.ToLower(rest[:end]))
	if !ok {
		return nil
	}
	return fmt.Errorf("%s%c is not a comparison; use %s=VALUE, %s!=VALUE or, for numbers, %s>N; quote a word that contains such characters",
		c.Name, rest[end], c.Name, c.Name, c.Name)
}

// operand consumes the value that a column or a label is compared with.
func (p *parser[T]) operand(key, op string) (string, error) {
	if p.at < len(p.text) && strings.IndexByte(operators, p.text[p.at]) >= 0 {
		return "", fmt.Errorf("%s%s%c is not a comparison; use =, == or !=, or for numbers >, >=, < or <=; quote a value that starts with such characters",
			key, op, p.text[p.at])
	}
	return p.value()
}

// value consumes the rest of a term and removes its quotes.
func (p *parser[T]) value() (string, error) {
	var b strings.Builder
	for p.at < len(p.text) && !isBlank(p.text[p.at]) {
		if p.text[p.at] != '"' {
			b.WriteByte(p.text[p.at])
			p.at++
			continue
		}
		if err := p.quoted(&b); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// quoted consumes a quoted text, in which a quote is doubled.
func (p *parser[T]) quoted(b *strings.Builder) error {
	open := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '\t':
			c = ' ' // a cell shows a tab as an escape
		case c == '"' && !strings.HasPrefix(p.text[p.at:], `""`):
			p.at++
			return nil
		case c == '"':
			p.at++
		}
		b.WriteByte(c)
	}
	return fmt.Errorf("unclosed quote (opened at %d)", column(p.text, open))
}

func (p *parser[T]) pattern(t *term[T]) error {
	var err error
	if t.text, err = p.value(); err != nil {
		return err
	}
	switch {
	case t.text == "":
		return errors.New("re: needs an expression, as in re:EXPRESSION")
	case len(t.text) > maxRegexp:
		return fmt.Errorf("the expression is %d bytes long; the limit is %d", len(t.text), maxRegexp)
	}
	if t.re, err = regexp.Compile("(?i)" + t.text); err != nil {
		return fmt.Errorf("re: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return nil
}

// notOfLabels reports characters that Kubernetes does not allow in label names.
func notOfLabels(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
}

func (p *parser[T]) label(t *term[T]) error {
	t.key = p.name("")
	if p.options.Label == nil {
		return errors.New("these rows have no labels, so label: cannot be used")
	}
	if strings.ContainsFunc(t.key, notOfLabels) {
		return fmt.Errorf("label:%s is not a valid label name; use label:NAME or label:NAME=VALUE", t.key)
	}
	if t.key == "" {
		return errors.New("label: needs a name, as in label:NAME or label:NAME=VALUE")
	}
	t.op = p.operator()
	switch {
	case t.op == "=" || t.op == "!=":
		var err error
		t.text, err = p.operand("label:"+t.key, t.op)
		return err
	case t.op == "" && (p.at == len(p.text) || isBlank(p.text[p.at])):
		return nil
	}
	return fmt.Errorf("label:%s can only be compared with = or !=", t.key)
}

func (p *parser[T]) field(t *term[T]) error {
	name := strings.ToLower(t.key)
	c, ok := Meant(p.options.Columns, name)
	if !ok {
		return fmt.Errorf("%q is not a column; %s", t.key, among(name, p.options.Columns))
	}
	t.key, t.column = c.Name, c
	var err error
	if t.text, err = p.operand(name, t.op); err != nil {
		return err
	}
	t.number, t.isNum = parseNumber(t.text)
	if t.op == "=" || t.op == "!=" {
		return nil
	}
	switch {
	case c.Number == nil:
		return fmt.Errorf("%s is text: %s cannot be compared with %s; use %s=VALUE or %s!=VALUE", name, name, t.op, name, name)
	case !t.isNum:
		return fmt.Errorf("%q is not a number; %s%s needs one such as 20, 80%% or 2h30m", t.text, name, t.op)
	}
	return nil
}
