package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/fleet/human"
)

// maxKeys limits an order: further keys would never decide anything.
const maxKeys = 8

// Order is a list of columns to sort by, most significant first. The zero Order sorts by the
// tie only.
type Order[T any] struct{ keys []key[T] }

type key[T any] struct {
	column     Column[T]
	descending bool
}

// By returns an order by one column.
func By[T any](c Column[T], descending bool) Order[T] {
	return Order[T]{keys: []key[T]{{c, descending}}}
}

// First returns the most significant key; ok is false if there is none.
func (o Order[T]) First() (column string, descending, ok bool) {
	if len(o.keys) == 0 {
		return "", false, false
	}
	return o.keys[0].column.Name, o.keys[0].descending, true
}

// ParseOrder parses "-ip,node": column names, with a minus for descending ones.
func ParseOrder[T any](text string, columns []Column[T]) (Order[T], error) {
	if len(text) > MaxText {
		return Order[T]{}, fmt.Errorf("sort order is %d bytes long; the limit is %d", len(text), MaxText)
	}
	var o Order[T]
	if strings.TrimSpace(text) == "" {
		return o, nil
	}
	at := 1
	for part := range strings.SplitSeq(text, ",") {
		name := strings.ToLower(strings.TrimSpace(part))
		name, descending := strings.CutPrefix(name, "-")
		c, ok := Meant(columns, name)
		switch {
		case !ok:
			return Order[T]{}, fmt.Errorf("order: %q at %d is not a column; %s", part, at, among(name, columns))
		case slices.ContainsFunc(o.keys, func(k key[T]) bool { return k.column.Name == c.Name }):
			return Order[T]{}, fmt.Errorf("order: %q at %d is a duplicate", name, at)
		case len(o.keys) == maxKeys:
			return Order[T]{}, fmt.Errorf("order: more than %d columns", maxKeys)
		}
		o.keys = append(o.keys, key[T]{c, descending})
		at += len(part) + 1
	}
	return o, nil
}

// String returns the order in the form that ParseOrder reads.
func (o Order[T]) String() string {
	var b strings.Builder
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if k.descending {
			b.WriteByte('-')
		}
		b.WriteString(k.column.Name)
	}
	return b.String()
}

// sortable is a row with the cached values of its first keys; further ones hardly ever decide.
type sortable[T any] struct {
	values [2]value
	index  int32
	row    T
}

// value is the sort value of a row for a column.
type value struct {
	text    string
	number  float64
	unknown bool
}

func (c *Column[T]) value(row T) value {
	switch {
	case c.Rank != nil:
		return value{number: float64(c.Rank(row))}
	case c.Number != nil:
		n, ok := c.number(row)
		return value{number: n, unknown: !ok}
	}
	text := c.Text(row)
	return value{text: text, unknown: IsUnknown(text)}
}

func compare(a, b value, descending bool) int {
	switch {
	case a.unknown || b.unknown:
		return order(a.unknown, b.unknown)
	case a.number != b.number:
		if (a.number < b.number) != descending {
			return -1
		}
		return 1
	case a.text == b.text:
		return 0
	}
	c := human.Natural(a.text, b.text)
	if descending {
		return -c
	}
	return c
}

// order puts known values before unknown ones.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Before reports whether a row sorts before another, by the keys and then by the tie.
func (o Order[T]) Before(a, b T, tie func(T) string) bool {
	for i := range o.keys {
		k := &o.keys[i]
		if c := compare(k.column.value(a), k.column.value(b), k.descending); c != 0 {
			return c < 0
		}
	}
	return human.Natural(tie(a), tie(b)) < 0
}

// Sort sorts rows in place. Unknown values come last in either direction. Rows that are equal by
// the keys are sorted by the tie, ascending; remaining equal rows keep their order.
func (o Order[T]) Sort(rows []T, tie func(T) string) {
	// Rows usually come sorted by the tie: their index then does the same and is cheaper.
	if tie != nil && slices.IsSortedFunc(rows, func(a, b T) int { return human.Natural(tie(a), tie(b)) }) {
		tie = nil
	}
	sorting := make([]sortable[T], len(rows))
	for i, row := range rows {
		sorting[i] = sortable[T]{index: int32(i), row: row}
		for k := range min(len(o.keys), len(sorting[i].values)) {
			sorting[i].values[k] = o.keys[k].column.value(row)
		}
	}
	slices.SortFunc(sorting, func(a, b sortable[T]) int {
		for i := range o.keys {
			k := &o.keys[i]
			c := 0
			if i < len(a.values) {
				c = compare(a.values[i], b.values[i], k.descending)
			} else {
				c = compare(k.column.value(a.row), k.column.value(b.row), k.descending)
			}
			if c != 0 {
				return c
			}
		}
		if tie != nil {
			if c := human.Natural(tie(a.row), tie(b.row)); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.index, b.index)
	})
	for i := range sorting {
		rows[i] = sorting[i].row
	}
}
