package components

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/fleet/query"
)

// order and filter are those of the query package as a table uses them.
type order[T any] struct {
	by   query.Column[T]
	down bool
	set  bool
}

func (o order[T]) column() string { return o.by.Name }

func (o order[T]) sort(rows []T, tie func(T) string) {
	if !o.set {
		return
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		c := 0
		if o.by.Number != nil {
			x, _ := o.by.Number(a)
			y, _ := o.by.Number(b)
			c = cmp.Compare(x, y)
		} else {
			c = cmp.Compare(o.by.Text(a), o.by.Text(b))
		}
		if o.down {
			c = -c
		}
		if c == 0 {
			c = cmp.Compare(tie(a), tie(b))
		}
		return c
	})
}

type filter[T any] struct {
	words   []string
	columns []query.Column[T]
}

func (f filter[T]) match(row T) bool {
	for _, w := range f.words {
		hit := false
		for _, c := range f.columns {
			hit = hit || strings.Contains(c.Text(row), w)
		}
		if !hit {
			return false
		}
	}
	return true
}

// Filter is the text in effect.
func (t *Table[T]) Filter() string { return t.text }

// SetFilter shows the rows that a filter leaves. With an error the last one stays.
func (t *Table[T]) SetFilter(text string) error {
	t.text = text
	t.find = filter[T]{strings.Fields(text), t.o.Columns}
	if text != "" {
		t.past = t.find
	}
	t.again()
	return nil
}

// Next goes to the next row that the filter matches, or the last one that was set.
func (t *Table[T]) Next(step int, now time.Time) bool {
	for i := 1; i <= len(t.rows); i++ {
		at := ((t.cursor+step*i)%len(t.rows) + len(t.rows)) % len(t.rows)
		if t.past.match(t.rows[at]) {
			t.move(at, now)
			return true
		}
	}
	return false
}

// Order is the order in effect.
func (t *Table[T]) Order() string {
	if !t.order.set {
		return ""
	}
	if t.order.down {
		return "-" + t.order.by.Name
	}
	return t.order.by.Name
}

// SetOrder orders the rows, as "-ip,node".
func (t *Table[T]) SetOrder(text string) error {
	name, _, _ := strings.Cut(text, ",")
	down := strings.HasPrefix(name, "-")
	c, ok := query.Find(t.o.Columns, strings.TrimPrefix(name, "-"))
	t.order = order[T]{c, down, ok}
	t.again()
	return nil
}

// SortMenu are the letters of the sort menu.
func (t *Table[T]) SortMenu() []SortKey { return t.o.Sort }

// SortBy orders by a column, reversed when it is that already. Numbers begin with the
// greatest.
func (t *Table[T]) SortBy(column string) {
	c, ok := query.Find(t.o.Columns, column)
	if !ok {
		return
	}
	if t.order.set && t.order.by.Name == column {
		t.order.down = !t.order.down
	} else {
		t.order = order[T]{c, c.Number != nil, true}
	}
	t.again()
}

func (t *Table[T]) sortBeside(step int) {
	columns := t.shownColumns()
	if len(columns) == 0 {
		return
	}
	at := slices.IndexFunc(columns, func(c query.Column[T]) bool { return c.Name == t.order.column() })
	if at < 0 {
		at = 0
	} else {
		at = (at + step + len(columns)) % len(columns)
	}
	t.SortBy(columns[at].Name)
}
