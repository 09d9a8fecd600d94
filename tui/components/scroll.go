package components

import (
	"strconv"
	"time"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
)

// Scroll is the position in a sheet. It is a Body whose lines cannot be selected.
type Scroll struct{ top, lines, page int }

// Do carries out moves, within the lines last drawn.
func (s *Scroll) Do(action string, _ time.Time) bool {
	by, ok := map[string]int{
		keymap.Up: -1, keymap.Down: 1, keymap.PageUp: -s.page, keymap.PageDown: s.page,
		keymap.HalfUp: -max(s.page/2, 1), keymap.HalfDown: max(s.page/2, 1),
		keymap.First: -s.lines, keymap.Last: s.lines,
	}[action]
	if ok {
		s.move(by)
	}
	return ok
}

// Wheel scrolls by lines.
func (s *Scroll) Wheel(lines int, _ time.Time) { s.move(lines) }

// Show scrolls as little as shows some lines, or at least the first of them.
func (s *Scroll) Show(first, count int) {
	s.top = min(max(s.top, first+count+1-s.page), first) // the last row may say how much is below
}

// Click does nothing: lines cannot be selected.
func (*Scroll) Click(int, int, time.Time) bool { return false }

func (s *Scroll) move(by int) { s.top = max(min(s.top+by, s.lines-s.page), 0) }

// Window returns the visible part of a sheet. The last row shows how much is below.
func (s *Scroll) Window(sheet *draw.Sheet, height int) []string {
	s.lines, s.page = sheet.Len(), height
	s.move(0)
	out := append([]string(nil), sheet.Lines()[s.top:min(s.top+height, s.lines)]...)
	if below := s.lines - s.top - height; below > 0 && height > 1 {
		out[height-1] = draw.NewLine(sheet.Style(), sheet.Width()).
			Add(draw.Faint, sheet.Style().Pick("↓ ", "v ")+strconv.Itoa(below+1)+" more lines below").String()
	}
	return draw.Exactly(out, sheet.Width(), height)
}
