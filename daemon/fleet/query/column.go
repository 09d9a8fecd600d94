package query

// Column is one thing that can be known of a row.
type Column[T any] struct {
	Name   string // in filters, orders and --columns: lower case, no blanks
	Header string // of tables
	Title  string // one line for help
	Right  bool   // numbers stand to the right
	Wide   bool   // shown only when asked for
	Drop   int    // where room is short the highest goes first; 0: never
	Least  int    // narrowest useful width; 0: that of the header

	Text   func(T) string          // as shown, made safe; required
	Number func(T) (float64, bool) // for comparisons and orders; nil: text alone. false: not known
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
