package components

import (
	"time"
)

// Mouse is a mouse event, in cells of the page.
type Mouse struct {
	X, Y   int
	Click  bool
	Double bool // a second click at the same place: open
	Wheel  int  // rows, down is positive
}

// Body is the content of a pane: a table, a scrolled text, a map.
type Body interface {
	// Do runs an action of the keymap. It returns false if it is not an action of the body.
	Do(action string, now time.Time) bool
	// Wheel moves by rows.
	Wheel(rows int, now time.Time)
	// Click selects what is at a cell of the body. It returns false if there is nothing to open.
	Click(x, y int, now time.Time) bool
}

// Work carries out actions that move the focus, and passes the rest to the focused pane.
func (f *Frame) Work(action string, now time.Time) {
	if !f.Do(action) && f.Focus < len(f.Bodies) {
		f.Bodies[f.Focus].Do(action, now)
	}
}

// List returns the focused table, nil if another body is focused.
func (f *Frame) List() List {
	if f.Focus >= len(f.Bodies) {
		return nil
	}
	l, _ := f.Bodies[f.Focus].(List)
	return l
}

// Point scrolls a list that is drawn below some lines, or selects the row that is clicked. It
// reports whether a row was double-clicked.
func Point(l Body, m Mouse, above int, now time.Time) (open bool) {
	switch {
	case m.Wheel != 0:
		l.Wheel(m.Wheel, now)
	case (m.Click || m.Double) && m.Y >= above:
		return l.Click(m.X, m.Y-above, now) && m.Double
	}
	return false
}

// Mouse scrolls the pane under the pointer; a click focuses it and selects. It reports
// whether a row was double-clicked.
func (f *Frame) Mouse(m Mouse, now time.Time) (open bool) {
	pane, x, y, ok := f.At(m.X, m.Y)
	if !ok || pane >= len(f.Bodies) {
		return false
	}
	if m.Click || m.Double {
		f.Focus = pane
	}
	m.X, m.Y = x, y
	return Point(f.Bodies[pane], m, 0, now)
}
