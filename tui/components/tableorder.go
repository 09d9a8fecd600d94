package components

import (
	"slices"
	"strings"
	"time"

	"cnictl/tui/query"
)

// Filter returns the text in effect.
func (t *Table[T]) Filter() string { return t.text }

// SetFilter shows the matching rows and moves the cursor to the first. Clearing the filter
// leaves the cursor on its row. On an error, the last filter stays.
func (t *Table[T]) SetFilter(text string) error {
	found, err := query.Parse(text, query.Options[T]{Columns: t.o.Columns, Label: t.o.Label})
	if err != nil {
		return err
	}
	if text != t.text && !found.Empty() {
		t.toTop()
	}
	t.text, t.find, t.words = text, found, words(text)
	t.again()
	if !found.Empty() && len(t.rows) > 0 {
		t.past = found
	}
	return nil
}

// words returns the words of a filter that are highlighted, in lower case: not the column and the value
// of a comparison with blanks around its operator.
func words(text string) []string {
	var out []string
	all := append(strings.Fields(strings.ToLower(text)), "")
	before := ""
	for i, w := range all[:len(all)-1] {
		after := all[i+1]
		column := strings.HasPrefix(after, "!=") || strings.IndexAny(after, "=<>") == 0
		end := strings.TrimSuffix(before, "=")
		value := before != "" && strings.Trim(before, "!=<>") == "" || strings.HasSuffix(end, "<") || strings.HasSuffix(end, ">")
		if !column && !value && !strings.ContainsAny(w, "!=<>:\"~") {
			out = append(out, w)
		}
		before = w
	}
	return out
}

// Next goes to the next or previous row that the current filter, or else the last one,
// matches.
func (t *Table[T]) Next(step int, now time.Time) bool {
	for i := 1; i <= len(t.rows); i++ {
		at := ((t.cursor+step*i)%len(t.rows) + len(t.rows)) % len(t.rows)
		if t.past.Match(t.rows[at]) {
			t.move(at, now)
			return true
		}
	}
	return false
}

// Order returns the order in effect.
func (t *Table[T]) Order() string { return t.order.String() }

// SetOrder sorts the rows by an order such as "-ip,node" and puts the cursor on the first.
func (t *Table[T]) SetOrder(text string) error {
	o, err := query.ParseOrder(text, t.o.Columns)
	if err != nil {
		return err
	}
	t.order = o
	t.toTop()
	t.again()
	return nil
}

// Reset restores the initial order and shows all rows.
func (t *Table[T]) Reset() {
	t.faults = false
	_ = t.SetFilter("") // both were valid
	_ = t.SetOrder(t.o.Order)
}

// SortMenu returns the letters of the sort menu.
func (t *Table[T]) SortMenu() []SortKey { return t.o.Sort }

// SortBy sorts by a column, or reverses the order if it is the current one, and puts the
// cursor on the first row. Numbers begin with the greatest.
func (t *Table[T]) SortBy(column string) {
	c, ok := query.Find(t.o.Columns, column)
	if !ok {
		return
	}
	descending := c.Number != nil
	if by, down, ok := t.order.First(); ok && by == column {
		descending = !down
	}
	t.order = query.By(c, descending)
	t.toTop()
	t.again()
}

func (t *Table[T]) sortBeside(step int) {
	columns := t.shownColumns()
	if len(columns) == 0 {
		return
	}
	by, _, _ := t.order.First()
	at := slices.IndexFunc(columns, func(c query.Column[T]) bool { return c.Name == by })
	if at < 0 {
		at = 0
	} else {
		at = (at + step + len(columns)) % len(columns)
	}
	t.SortBy(columns[at].Name)
}
