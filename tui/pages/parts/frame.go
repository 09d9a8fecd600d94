package parts

import (
	"cnictl/tui/components"
	"cnictl/tui/keymap"
)

// ActionZoom shows the pane with the focus alone, and all again.
const ActionZoom = "zoom"

// ZoomKey is the binding of pages with several panes.
func ZoomKey() keymap.Binding {
	return keymap.Of(ActionZoom, "z", "this pane alone, or all", "z")
}

// Frame is a page of some lines above and panes below. It knows where the panes were
// drawn last, which one has the focus and whether that one is alone.
type Frame struct {
	Focus int
	Zoom  bool

	top   int
	rects []components.Rect
	shown []int // pane of each rect
	panes int
}

// Draw lays the page out. Where panes are stacked that with the focus gets more room.
func (f *Frame) Draw(style components.Style, width, height int, above []string, panes []components.Pane) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	if short := height - 4; len(above) > max(short, 1) {
		above = above[:max(short, 1)]
	}
	f.panes = len(panes)
	f.Focus = min(f.Focus, len(panes)-1)
	f.shown = f.shown[:0]
	var seen []components.Pane
	for i, p := range panes {
		if f.Zoom && i != f.Focus {
			continue
		}
		p.Focused = i == f.Focus
		if p.Focused && width < components.SideBySide {
			p.Weight = 3 * max(p.Weight, 1)
		}
		seen = append(seen, p)
		f.shown = append(f.shown, i)
	}
	f.top = len(above)
	rest := height - f.top
	f.rects = components.Layout(width, rest, seen)
	lines := append(make([]string, 0, height), above...)
	lines = append(lines, components.Panes(style, width, rest, seen)...)
	return components.Exactly(lines, width, height)
}

// At is the pane at a cell of the page, and the cell within it.
func (f *Frame) At(x, y int) (pane, px, py int, ok bool) {
	for i, r := range f.rects {
		if r.Contains(x, y-f.top) {
			return f.shown[i], x - r.X, y - f.top - r.Y, true
		}
	}
	return 0, 0, 0, false
}

// Do carries out what moves the focus.
func (f *Frame) Do(action string) bool {
	n := max(f.panes, 1)
	switch action {
	case keymap.NextPane:
		f.Focus = (f.Focus + 1) % n
	case keymap.PrevPane:
		f.Focus = (f.Focus + n - 1) % n
	case ActionZoom:
		f.Zoom = !f.Zoom
	default:
		return false
	}
	return true
}
