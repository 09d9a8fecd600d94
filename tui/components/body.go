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
// Bodies must be in the order of the panes.
func (f *Frame) Work(action string, now time.Time, bodies ...Body) {
	if !f.Do(action) && f.Focus < len(bodies) {
		bodies[f.Focus].Do(action, now)
	}
}

// Mouse scrolls the pane under the pointer; a click focuses it and selects. It reports
// whether a row was double-clicked.
func (f *Frame) Mouse(m Mouse, now time.Time, bodies ...Body) (open bool) {
	pane, x, y, ok := f.At(m.X, m.Y)
	if !ok || pane >= len(bodies) {
		return false
	}
	switch {
	case m.Wheel != 0:
		bodies[pane].Wheel(m.Wheel, now)
	case m.Click || m.Double:
		f.Focus = pane
		return bodies[pane].Click(x, y, now) && m.Double
	}
	return false
}
