package components

import (
	"time"

	"cnictl/tui/query"
)

// Picker picks the rows of a table from many: the first that match its filter, in its
// order. A table filters and sorts all its rows at each key press, which takes too long for
// a hundred thousand; a Picker does it in the background. It may be used by a goroutine
// other than the table's.
type Picker[T any] struct {
	id    func(T) string
	fault func(T) bool // nil = all rows
	find  *query.Filter[T]
	order query.Order[T]
	most  int
	rows  []T
	found int
	all   int
	asked uint64
	full  bool // rows[most-1] bounds the choice: rows after it are not needed
}

// Picker returns a Picker of at most that many rows, by the current filter, order and
// faults.
func (t *Table[T]) Picker(most int) *Picker[T] {
	p := &Picker[T]{id: t.o.ID, find: t.find, order: t.order, most: most, asked: t.asked}
	if t.faults {
		p.fault = t.o.Fault
	}
	return p
}

// Add offers rows to the Picker.
func (p *Picker[T]) Add(rows ...T) {
	p.all += len(rows)
	for _, r := range rows {
		if !p.find.Match(r) || p.fault != nil && !p.fault(r) {
			continue
		}
		p.found++
		if !p.full || p.order.Before(r, p.rows[p.most-1], p.id) {
			p.rows = append(p.rows, r)
		}
	}
	if len(p.rows) >= 4*p.most {
		p.Cut()
		p.full = true
	}
}

// Cut drops the rows beyond the limit.
func (p *Picker[T]) Cut() {
	if len(p.rows) > p.most {
		p.order.Sort(p.rows, p.id)
		clear(p.rows[p.most:])
		p.rows = p.rows[:p.most]
	}
}

// All returns how many rows were added.
func (p *Picker[T]) All() int { return p.all }

// Picked reports whether the Picker still matches the filter, order and faults.
func (t *Table[T]) Picked(p *Picker[T]) bool { return p != nil && p.asked == t.asked }

// SetPicked sets the rows from a Picker. Found then counts all rows.
func (t *Table[T]) SetPicked(p *Picker[T], now time.Time) {
	if t.Picked(p) && t.picked != p.asked { // the user is waiting for them
		t.picked, t.sorted = p.asked, time.Time{}
	}
	t.SetRows(p.rows, now)
	if t.beyond = 0; t.Picked(p) {
		t.beyond = p.found - len(p.rows)
	}
	t.total = p.all
}
