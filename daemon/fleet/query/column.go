package query

import (
	"math"
	"strconv"
	"strings"
)

// Column is one thing that can be known of a row.
type Column[T any] struct {
	Name   string // in filters, orders and --columns: lower case, no blanks
	Header string // of tables
	Title  string // one line for help
	Right  bool   // numbers stand to the right
	Wide   bool   // shown only when asked for
	Named  bool   // shown only when named
	Drop   int    // where room is short the highest goes first; 0: never
	Least  int    // narrowest useful width; 0: that of the header

	Text   func(T) string          // as shown, made safe; required
	Number func(T) (float64, bool) // for comparisons and orders; nil: text alone. false: not known
	Also   func(T) string          // a second text that column=value takes; nil, or "" of a row: none
	Rank   func(T) int             // for orders where it is there, before Number and Text: the lowest first

	// CSV are the columns that stand for it in CSV, which has one plain number in a column;
	// nil: its text, or with a Unit its Number.
	CSV  []Column[T]
	Unit string // of Number where Text writes it otherwise: "%", "SECONDS"

	// Joined is the texts of all columns of the table, one behind the other, with ASCII
	// letters in lower case; nil: they are not kept. A word that is not there is in no
	// column, which is the answer for most rows.
	Joined func(T) string
}

// Plain are the columns as CSV has them.
func Plain[T any](columns []Column[T]) []Column[T] {
	var out []Column[T]
	for _, c := range columns {
		switch {
		case c.CSV != nil:
			out = append(out, Plain(c.CSV)...)
		case c.Unit != "":
			if !strings.HasSuffix(c.Header, c.Unit) {
				c.Header += " " + c.Unit
			}
			number := c.number
			c.Text = func(row T) string {
				v, ok := number(row)
				if !ok {
					return ""
				}
				return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return out
}

// Find returns the column of a name.
func Find[T any](columns []Column[T], name string) (Column[T], bool) {
	for _, c := range columns {
		if c.Name == name {
			return c, true
		}
	}
	return Column[T]{}, false
}

// synonyms are other names of columns, with those that a table may have in their place.
var synonyms = map[string][]string{
	"status": {"state"}, "state": {"status"}, "cool": {"cooling"}, "cooling": {"cool"}, "spoiled/28": {"spoiled28"},
	"dev": {"device"}, "used": {"assigned"}, "ip": {"address"}, "since": {"for"}, "age": {"for"}, "block": {"cidr"},
	"what": {"kind"}, "kind": {"what"}, "message": {"text"}, "text": {"message"}, "at": {"time"}, "time": {"at"},
}

// Meant returns the column that a name means: the column of that name, else the one with
// that header, upper and lower case alike and with - or nothing for a blank, else the one
// that a synonym names.
func Meant[T any](columns []Column[T], name string) (Column[T], bool) {
	name = strings.ToLower(name)
	if c, ok := Find(columns, name); ok {
		return c, true
	}
	for _, c := range columns {
		header := strings.ToLower(c.Header)
		if name != "" && (header == name || strings.ReplaceAll(header, " ", "-") == name || strings.ReplaceAll(header, " ", "") == name) {
			return c, true
		}
	}
	for _, other := range synonyms[name] {
		if c, ok := Find(columns, other); ok {
			return c, true
		}
	}
	return Column[T]{}, false
}

// Shown is how a screen shows a column.
type Shown struct {
	Name  string
	Drop  int
	Wide  bool
	Least int // 0: as the column has it
}

// Arrange puts the columns that a screen shows first, in its order. The others are Named:
// filters and orders take them, as those of the command do.
func Arrange[T any](all []Column[T], shown ...Shown) []Column[T] {
	out := make([]Column[T], 0, len(all))
	for _, s := range shown {
		c, ok := Find(all, s.Name)
		if !ok {
			continue
		}
		c.Drop, c.Wide, c.Named, c.Least = s.Drop, s.Wide, false, max(c.Least, s.Least)
		out = append(out, c)
	}
	for _, c := range all {
		if _, ok := Find(out, c.Name); !ok {
			c.Named = true
			out = append(out, c)
		}
	}
	return out
}

// Pick returns the columns that names mean, in that order, and the first name that means
// none.
func Pick[T any](columns []Column[T], names ...string) (picked []Column[T], unknown string) {
	for _, name := range names {
		c, ok := Meant(columns, name)
		if !ok {
			return nil, name
		}
		picked = append(picked, c)
	}
	return picked, ""
}

// Usual are the columns shown where none are named; wide: with those that are Wide.
func Usual[T any](columns []Column[T], wide bool) (usual []Column[T]) {
	for _, c := range columns {
		if !c.Named && (wide || !c.Wide) {
			usual = append(usual, c)
		}
	}
	return usual
}

// Names lists the columns by name.
func Names[T any](columns []Column[T]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// number is the Number of a row; what is no number is not known.
func (c *Column[T]) number(row T) (float64, bool) {
	if c.Number == nil {
		return 0, false
	}
	v, ok := c.Number(row)
	return v, ok && !math.IsNaN(v)
}

// IsUnknown reports whether a text stands for an unknown value: empty, - or ?.
func IsUnknown(text string) bool { return text == "" || text == "-" || text == "?" }

// among names what would have been accepted, the most alike first where one is alike.
func among[T any](name string, columns []Column[T]) string {
	known := Names(columns)
	for _, n := range known {
		if n != "" && name != "" && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n)) {
			return "did you mean " + n + "?"
		}
	}
	return "the columns are " + strings.Join(known, ", ")
}
