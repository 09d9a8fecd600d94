package query

import (
	"math"
	"strconv"
	"strings"

	"cnictl/tui/show"
)

// Column is one property of a row.
type Column[T any] struct {
	Name   string // in filters, orders and --columns: lower case, without blanks
	Header string // in tables
	Title  string // one line for help
	Right  bool   // right-aligned, for numbers
	Wide   bool   // shown only with --wide or the like
	Named  bool   // shown only if named explicitly
	Drop   int    // the highest is dropped first if space is short; 0 = never
	Empty  bool   // left out of a table of a command on a terminal if no row has a value
	Least  int    // narrowest useful width; 0 = width of the header

	Text   func(T) string          // as shown, before what draws it escapes it; required
	Number func(T) (float64, bool) // for comparisons and orders, false if unknown; nil = text only
	Also   func(T) string          // a second text that column=value matches; nil, or "" for a row, if none
	Rank   func(T) int             // if set, orders use it instead of Number and Text, lowest first

	// CSV are its columns in CSV, which has one plain number per column; nil = its Text, or its
	// Number if it has a Unit.
	CSV  []Column[T]
	Unit string // of Number if Text formats it differently: "%", "SECONDS"

	// Joined returns the concatenated texts of all columns of the table, with ASCII letters in
	// lower case; nil if they are not cached. A word missing from it is in no column, which is the
	// case for most rows.
	Joined func(T) string
}

// Plain returns the columns as CSV has them.
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

// Headed returns the column with another heading. In CSV, where headings never change, it keeps its own.
func (c Column[T]) Headed(header string) Column[T] {
	if c.CSV == nil {
		c.CSV = []Column[T]{c}
	}
	c.Header = header
	return c
}

// Find returns the column with the given name.
func Find[T any](columns []Column[T], name string) (Column[T], bool) {
	for _, c := range columns {
		if c.Name == name {
			return c, true
		}
	}
	return Column[T]{}, false
}

// synonyms maps a column name to the names that a table may use instead.
var synonyms = map[string][]string{
	"status": {"state"}, "state": {"status"}, "cool": {"cooling"}, "cooling": {"cool"}, "spoiled/28": {"spoiled28"},
	"dev": {"device"}, "used": {"assigned"}, "ip": {"address"}, "since": {"for"}, "age": {"for"}, "block": {"cidr"},
	"warm": {"free"}, "unused": {"wasted"}, "room": {"left"}, "what": {"kind"}, "kind": {"what"},
	"message": {"text"}, "text": {"message"}, "at": {"time"}, "time": {"at"},
}

// Meant returns the column that a name refers to: the column with that name, else the one with
// that header, ignoring case and with - or nothing for a blank, else the one with that header in CSV,
// else the one that a synonym names.
func Meant[T any](columns []Column[T], name string) (Column[T], bool) {
	name = strings.ToLower(name)
	if c, ok := Find(columns, name); ok {
		return c, true
	}
	headed := func(header string) bool {
		header = strings.ToLower(header)
		return name != "" && (header == name || strings.ReplaceAll(header, " ", "-") == name || strings.ReplaceAll(header, " ", "") == name)
	}
	for _, c := range columns {
		if headed(c.Header) {
			return c, true
		}
	}
	for _, c := range columns {
		if len(c.CSV) == 1 && headed(c.CSV[0].Header) {
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
	Least int // 0 = as the column has it
}

// Arrange moves the columns that a screen shows to the front, in its order. The others become
// Named: filters and orders accept them, like those of the command.
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

// Pick returns the columns that names refer to, in that order, and the first name without a
// column.
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

// Usual returns the columns shown by default; with wide, also those that are Wide.
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

// shown is the text as a terminal shows it, which is what filters are written for.
func (c *Column[T]) shown(row T) string { return show.Printable(c.Text(row)) }

// number is Number for a row; NaN is unknown.
func (c *Column[T]) number(row T) (float64, bool) {
	if c.Number == nil {
		return 0, false
	}
	v, ok := c.Number(row)
	return v, ok && !math.IsNaN(v)
}

// IsUnknown reports whether a text means unknown: empty, - or ?.
func IsUnknown(text string) bool { return text == "" || text == "-" || text == "?" }

// among names a similar column if there is one, else all columns.
func among[T any](name string, columns []Column[T]) string {
	known := Names(columns)
	for _, n := range known {
		if n != "" && name != "" && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n)) {
			return "did you mean " + n + "?"
		}
	}
	return "the columns are " + strings.Join(known, ", ")
}
