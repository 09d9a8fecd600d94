package panes

import (
	"time"

	"cnictl/tui/pages"
)

// Body is what stands in a pane: a table, a text that is scrolled, a map.
type Body interface {
	// Do carries out an action of the keymap; false: it is none of the body's.
	Do(action string, now time.Time) bool
	// Wheel moves by rows.
	Wheel(rows int, now time.Time)
	// Click selects what is at a cell of the body; false: there is nothing to open.
	Click(x, y int, now time.Time) bool
}

// Work carries out what moves the focus, all else in the pane that has it. Bodies are in
// the order of the panes.
func (f *Frame) Work(action string, now time.Time, bodies ...Body) {
	if !f.Do(action) && f.Focus < len(bodies) {
		bodies[f.Focus].Do(action, now)
	}
}

// Mouse turns the wheel in the pane under the pointer; a click gives it the focus and
// selects. A double click on a row wants it opened.
func (f *Frame) Mouse(m pages.Mouse, now time.Time, bodies ...Body) (open bool) {
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
