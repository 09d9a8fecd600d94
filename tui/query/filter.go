package query

import (
	"regexp"
	"strconv"
	"strings"
)

// MaxText limits a filter or an order, in bytes.
const MaxText = 1024

// Options determine what a filter may refer to.
type Options[T any] struct {
	Columns []Column[T]
	Visible []string                       // searched for words; nil = all neither Wide nor Named
	Label   func(T, string) (string, bool) // for label: terms; nil if rows have no labels
}

// Filter selects the rows that match every term. It never changes.
type Filter[T any] struct {
	terms   []term[T]
	visible []Column[T]
	joined  func(T) string // of the columns; nil if one has none
	label   func(T, string) (string, bool)
}

// term is one condition.
type term[T any] struct {
	not    bool
	kind   kind
	key    string // name of a column or a label
	op     string // between key and text; "" for a label's existence
	text   string // without quotes
	lower  string // text in lower case
	ascii  bool   // lower is ASCII
	re     *regexp.Regexp
	column Column[T]
	number float64
	isNum  bool // text is a number, a percentage or a duration
}

type kind uint8

const (
	word kind = iota
	pattern
	label
	field
)

// Empty reports whether the filter matches every row.
func (f *Filter[T]) Empty() bool { return f == nil || len(f.terms) == 0 }

// Match reports whether a row matches every term.
func (f *Filter[T]) Match(row T) bool {
	if f == nil {
		return true
	}
	for i := range f.terms {
		if f.accepts(&f.terms[i], row) == f.terms[i].not {
			return false
		}
	}
	return true
}

func (f *Filter[T]) accepts(t *term[T], row T) bool {
	switch t.kind {
	case word:
		if t.ascii && f.joined != nil && !strings.Contains(f.joined(row), t.lower) {
			return false
		}
		for i := range f.visible {
			if t.within(f.visible[i].shown(row)) {
				return true
			}
		}
		return false
	case pattern:
		for i := range f.visible {
			if t.re.MatchString(f.visible[i].shown(row)) {
				return true
			}
		}
		return false
	case label:
		value, ok := f.label(row, t.key)
		switch t.op {
		case "":
			return ok
		case "!=":
			return !ok || !t.glob(value)
		}
		return ok && t.glob(value)
	}
	return t.compares(row)
}

// compares compares a column with the value.
func (t *term[T]) compares(row T) bool {
	if t.op == "=" || t.op == "!=" {
		return t.equals(row) == (t.op == "=")
	}
	n, ok := t.column.number(row)
	if !ok {
		return false
	}
	switch t.op {
	case ">":
		return n > t.number
	case ">=":
		return n >= t.number
	case "<":
		return n < t.number
	}
	return n <= t.number
}

// equals reports whether the column's number equals the value, or its text or alternative text
// matches it.
func (t *term[T]) equals(row T) bool {
	if t.isNum {
		if n, ok := t.column.number(row); ok && n == t.number {
			return true
		}
	}
	if t.column.Also != nil {
		if also := t.column.Also(row); also != "" && t.glob(also) {
			return true
		}
	}
	return t.glob(t.column.shown(row))
}

// within reports whether a text contains the word.
func (t *term[T]) within(text string) bool {
	if t.ascii {
		return containsFold(text, t.lower)
	}
	return strings.Contains(strings.ToLower(text), t.lower)
}

// glob matches a whole text against a pattern with stars.
func (t *term[T]) glob(text string) bool {
	if !t.ascii {
		text = strings.ToLower(text)
	}
	return Glob(text, t.lower)
}

// lowerOf maps ASCII letters to lower case.
var lowerOf = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// containsFold looks for a part in ASCII lower case. In UTF-8, bytes of other characters are
// never ASCII.
func containsFold(s, part string) bool {
	if part == "" {
		return true
	}
	first := part[0]
	for i := 0; i+len(part) <= len(s); i++ {
		if lowerOf[s[i]] != first {
			continue
		}
		j := 1
		for j < len(part) && lowerOf[s[i+j]] == part[j] {
			j++
		}
		if j == len(part) {
			return true
		}
	}
	return false
}

// Glob matches a whole text, ignoring case, against a pattern in lower case in which * matches
// any text. It takes at most len(s)*len(p) steps.
func Glob(s, p string) bool {
	si, pi, star, mark := 0, 0, -1, 0
	for si < len(s) {
		switch {
		case pi < len(p) && p[pi] == '*':
			star, mark = pi, si
			pi++
		case pi < len(p) && p[pi] == lowerOf[s[si]]:
			si++
			pi++
		case star >= 0:
			mark++
			si, pi = mark, star+1
		default:
			return false
		}
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}

// String returns the filter in the form that Parse reads.
func (f *Filter[T]) String() string {
	if f == nil {
		return ""
	}
	parts := make([]string, len(f.terms))
	for i := range f.terms {
		parts[i] = f.terms[i].String()
	}
	return strings.Join(parts, " ")
}

func (t *term[T]) String() string {
	out := ""
	if t.not {
		out = "!"
	}
	switch t.kind {
	case pattern:
		return out + "re:" + quoteValue(t.text)
	case label:
		if t.op == "" {
			return out + "label:" + t.key
		}
		return out + "label:" + t.key + t.op + quoteValue(t.text)
	case field:
		return out + t.key + t.op + quoteValue(t.text)
	}
	if t.text == "" || strings.ContainsAny(t.text, " \"=<>!:~") {
		return out + quote(t.text)
	}
	return out + t.text
}

// Term is the filter of the rows whose column has a text.
func Term(column, text string) string { return column + "=" + quoteValue(text) }

func quoteValue(s string) string {
	if s == "" || strings.ContainsAny(s, " \"") || strings.IndexByte(operators, s[0]) >= 0 {
		return quote(s)
	}
	return s
}

// quote puts a text in quotes and doubles the quotes inside.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// parseNumber parses a number, a percentage or a duration (5m, 3h20m, 2d4h), which becomes
// seconds.
func parseNumber(s string) (float64, bool) {
	s = strings.TrimSuffix(s, "%")
	if s == "" || len(s) > 32 || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n, !strings.ContainsAny(s, "xXpP_")
	}
	return parseDuration(s)
}

// parseDuration parses units as ages are printed, largest first.
func parseDuration(s string) (float64, bool) {
	total, rest, last := 0.0, s, 0.0
	for rest != "" {
		digits := 0
		for digits < len(rest) && (rest[digits] >= '0' && rest[digits] <= '9' || rest[digits] == '.') {
			digits++
		}
		if digits == 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(rest[:digits], 64)
		if err != nil {
			return 0, false
		}
		unit, size := unitOf(rest[digits:])
		if size == 0 || unit == 0 || last != 0 && unit >= last {
			return 0, false
		}
		total += n * unit
		rest, last = rest[digits+size:], unit
	}
	return total, last != 0
}

func unitOf(s string) (seconds float64, size int) {
	switch {
	case strings.HasPrefix(s, "ms"):
		return 0.001, 2
	case strings.HasPrefix(s, "s"):
		return 1, 1
	case strings.HasPrefix(s, "m"):
		return 60, 1
	case strings.HasPrefix(s, "h"):
		return 3600, 1
	case strings.HasPrefix(s, "d"):
		return 86400, 1
	case strings.HasPrefix(s, "w"):
		return 604800, 1
	}
	return 0, 0
}
