package panes

import (
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/theme"
)

// Frame lays out a page of some lines with panes below. It remembers where the panes were
// last drawn, which one is focused and whether that one is maximised.
type Frame struct {
	Focus int
	Zoom  bool
	// Left is how many panes are stacked at the left if panes are side by side but do not
	// all fit as columns; 0 = none.
	Left int
	// Need is how many rows each pane can fill at most, 0 if unknown. A short table leaves
	// its space to the panes below.
	Need []int

	top   int
	rects []components.Rect
	shown []int // pane of each rect
	panes int
}

// Draw lays out the page. If panes are stacked, the focused one gets more space.
func (f *Frame) Draw(style components.Style, width, height int, above []string, panes []components.Pane) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	if most := max(height-4, 1); len(above) > most {
		above = above[:most]
	}
	f.panes = len(panes)
	if style.Linear {
		return components.Stacked(style, width, height, above, panes)
	}
	// The first panes are stacked if not all fit as columns.
	piled := f.Left > 0 && width >= components.SideBySide && width*leftShare/100 < components.SideBySide
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
		p.Weight = short * max(p.Weight, 1)
		if i < len(f.Need) && f.Need[i] > 0 && f.Need[i] <= height*2/5 && !f.Zoom && (width < components.SideBySide || piled && i < f.Left) {
			p.Least, p.Weight = f.Need[i], 1
		}
		seen = append(seen, p)
		f.shown = append(f.shown, i)
	}
	f.top = len(above)
	rest := height - f.top
	lines := append(make([]string, 0, height), above...)
	if piled && len(seen) > f.Left {
		lines = append(lines, f.columns(style, width, rest, seen)...)
		return components.Exactly(lines, width, height)
	}
	f.rects = components.Layout(width, rest, seen)
	lines = append(lines, components.Panes(style, width, rest, seen)...)
	return components.Exactly(lines, width, height)
}

// short is the factor by which a pane that needs few rows gets less of the remaining space.
const short = 20

// leftShare is the width of the left column in percent.
const leftShare = 58

// columns stacks the first panes at the left and the others to their right.
func (f *Frame) columns(style components.Style, width, height int, panes []components.Pane) []string {
	w := width * leftShare / 100
	left, right := panes[:f.Left], panes[f.Left:]
	f.rects = components.Layout(w, height, left)
	for _, r := range components.Layout(width-w-1, height, right) {
		r.X += w + 1
		f.rects = append(f.rects, r)
	}
	a, b := components.Panes(style, w, height, left), components.Panes(style, width-w-1, height, right)
	lines := make([]string, 0, height)
	for y := range min(len(a), len(b)) {
		lines = append(lines, a[y]+style.Paint(theme.Border, style.Pick("│", "|"))+b[y])
	}
	return lines
}

// At returns the pane at a cell of the page, and the cell within the pane.
func (f *Frame) At(x, y int) (pane, px, py int, ok bool) {
	for i, r := range f.rects {
		if r.Contains(x, y-f.top) {
			return f.shown[i], x - r.X, y - f.top - r.Y, true
		}
	}
	return 0, 0, 0, false
}

// Do moves the focus or maximises the focused pane. It returns false for other actions.
func (f *Frame) Do(action string) bool {
	n := max(f.panes, 1)
	switch action {
	case keymap.NextPane:
		f.Focus = (f.Focus + 1) % n
	case keymap.PrevPane:
		f.Focus = (f.Focus + n - 1) % n
	case keymap.Zoom:
		f.Zoom = !f.Zoom
	default:
		return false
	}
	return true
}
