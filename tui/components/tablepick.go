package components

import (
	"time"

	"cnictl/daemon/fleet/query"
)

// Picker chooses the rows that a table holds from many: the first that match its filter,
// in its order. A table filters and orders all its rows at each key, which takes too long
// for a hundred thousand; a Picker does it in the background. It may be used by another
// goroutine than the table.
type Picker[T any] struct {
	id    func(T) string
	fault func(T) bool // nil: all rows
	find  *query.Filter[T]
	order query.Order[T]
	most  int
	rows  []T
	found int
	all   int
	asked uint64
	full  bool // the last of the first most rows is in place: later ones are not needed
}

// Picker starts a choice of at most so many rows, by the current filter, order and
// faults.
func (t *Table[T]) Picker(most int) *Picker[T] {
	p := &Picker[T]{id: t.o.ID, find: t.find, order: t.order, most: most, asked: t.asked}
	if t.faults {
		p.fault = t.o.Fault
	}
	return p
}

// Add takes rows into the choice.
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

// Cut finishes the choice.
func (p *Picker[T]) Cut() {
	if len(p.rows) > p.most {
		p.order.Sort(p.rows, p.id)
		clear(p.rows[p.most:])
		p.rows = p.rows[:p.most]
	}
}

// All is how many rows were added.
func (p *Picker[T]) All() int { return p.all }

// Picked reports whether the choice still matches the filter, order and faults.
func (t *Table[T]) Picked(p *Picker[T]) bool { return p != nil && p.asked == t.asked }

// SetPicked gives the table the rows of a choice. Its count is that of all rows.
func (t *Table[T]) SetPicked(p *Picker[T], now time.Time) {
	if t.Picked(p) && t.picked != p.asked { // the user waits for them
		t.picked, t.sorted = p.asked, time.Time{}
	}
	t.SetRows(p.rows, now)
	if t.beyond = 0; t.Picked(p) {
		t.beyond = p.found - len(p.rows)
	}
	t.total = p.all
}
