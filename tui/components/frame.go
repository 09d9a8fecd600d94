package components

import (
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
)

// Frame lays out a page of some lines with panes below. It remembers where the panes were
// last drawn, which one is focused and whether that one is maximised.
type Frame struct {
	Focus int
	Zoom  bool
	// Top puts the first pane above the others at every width, only as tall as it needs.
	Top bool
	// Need is how many rows each pane can fill at most, 0 if unknown. A short table leaves
	// its space to the panes below.
	Need []int
	// Bodies are those of the panes, in order.
	Bodies []Body

	top   int
	rects []Rect
	shown []int // pane of each rect
	panes int
}

// Draw lays out the page. If panes are stacked, the focused one gets more space.
func (f *Frame) Draw(style draw.Style, width, height int, above []string, panes []Pane) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	if most := max(height-4, 1); len(above) > most {
		above = above[:most]
	}
	f.panes = len(panes)
	if style.Linear {
		return Stacked(style, width, height, above, panes)
	}
	f.Focus = min(f.Focus, len(panes)-1)
	f.shown = f.shown[:0]
	var seen []Pane
	for i, p := range panes {
		if f.Zoom && i != f.Focus {
			continue
		}
		p.Focused = i == f.Focus
		if p.Focused && width < SideBySide {
			p.Weight = 3 * max(p.Weight, 1)
		}
		p.Weight = short * max(p.Weight, 1)
		if i < len(f.Need) && f.Need[i] > 0 && f.Need[i] <= height*2/5 && !f.Zoom && width < SideBySide {
			p.Least, p.Weight = f.Need[i], 1
		}
		seen = append(seen, p)
		f.shown = append(f.shown, i)
	}
	f.top = len(above)
	rest := height - f.top
	lines := append(make([]string, 0, height), above...)
	if f.Top && len(seen) > 1 {
		lines = append(lines, f.under(style, width, rest, seen)...)
		return draw.Exactly(lines, width, height)
	}
	f.rects = Layout(width, rest, seen)
	lines = append(lines, Panes(style, width, rest, seen)...)
	return draw.Exactly(lines, width, height)
}

// short is the factor by which a pane that needs few rows gets less of the remaining space.
const short = 20

// under draws the first pane, with at most two fifths of the rows, and the others below it.
func (f *Frame) under(style draw.Style, width, height int, panes []Pane) []string {
	tall := max(height*2/5, min(panes[0].Least+1, height))
	if len(f.Need) > 0 && f.Need[0] > 0 {
		tall = min(tall, f.Need[0]+1)
	}
	f.rects = Layout(width, tall, panes[:1])
	for _, r := range Layout(width, height-tall, panes[1:]) {
		r.Y += tall
		f.rects = append(f.rects, r)
	}
	return append(Panes(style, width, tall, panes[:1]), Panes(style, width, height-tall, panes[1:])...)
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
