package components

import (
	"slices"
	"strings"

	"cnictl/tui/draw"
)

// SideBySide is the least width at which panes are side by side; below, they are stacked.
const SideBySide = 110

// Pane is a titled part of a page.
type Pane struct {
	Title   string
	Note    string // to the right of the title
	Focused bool
	Weight  int // share of the space; 0 counts as 1
	Least   int // rows that it needs if panes are stacked; 0 counts as 3
	Lines   func(style draw.Style, width, height int) []string
}

// Rect is the area of a pane without its title, in cells from the upper left corner.
type Rect struct{ X, Y, Width, Height int }

// Contains reports whether a cell is inside.
func (r Rect) Contains(x, y int) bool {
	return x >= r.X && x < r.X+r.Width && y >= r.Y && y < r.Y+r.Height
}

// Layout assigns each pane its area.
func Layout(width, height int, panes []Pane) []Rect {
	out := make([]Rect, len(panes))
	if len(panes) == 0 || width <= 0 || height <= 0 {
		return out
	}
	if width >= SideBySide {
		x := 0
		for i, size := range shares(width-(len(panes)-1), panes, nil) {
			out[i] = Rect{x, min(1, height), size, max(height-1, 0)}
			x += size + 1
		}
		return out
	}
	least := make([]int, len(panes))
	for i, p := range panes {
		least[i] = p.Least
		if p.Least == 0 {
			least[i] = 3
		}
		least[i]++
	}
	y := 0
	for i, size := range shares(height, panes, least) {
		out[i] = Rect{0, min(y+1, height), width, max(size-1, 0)}
		y += size
	}
	return out
}

// shares divides a length by weight. If it is too short for all, later panes get less or
// nothing.
func shares(total int, panes []Pane, least []int) []int {
	out := make([]int, len(panes))
	rest := max(total, 0)
	if least != nil {
		for i := range out {
			out[i] = min(least[i], rest)
			rest -= out[i]
		}
	}
	weights := 0
	for _, p := range panes {
		weights += max(p.Weight, 1)
	}
	left := rest
	for i, p := range panes {
		add := rest * max(p.Weight, 1) / weights
		out[i] += add
		left -= add
	}
	for i := 0; left > 0 && i < len(out); i++ {
		out[i]++
		left--
	}
	return out
}

// Panes draws panes side by side, or stacked when the width is narrow.
func Panes(style draw.Style, width, height int, panes []Pane) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	rects := Layout(width, height, panes)
	drawn := make([][]string, len(panes))
	for i, p := range panes {
		r := rects[i]
		if r.Width > 0 && r.Height > 0 {
			of := style
			of.Idle = !p.Focused
			drawn[i] = draw.Exactly(p.Lines(of, r.Width, r.Height), r.Width, r.Height)
		}
	}
	if width < SideBySide {
		lines := make([]string, 0, height)
		for i, p := range panes {
			if rects[i].Y > len(lines) {
				lines = append(lines, paneTitle(style, width, p))
			}
			lines = append(lines, drawn[i]...)
		}
		return draw.Exactly(lines, width, height)
	}
	lines := make([]string, 0, height)
	for y := range height {
		l := draw.NewLine(style, width)
		for i, p := range panes {
			if i > 0 {
				l.Add(draw.Border, style.Pick("│", "|"))
			}
			switch {
			case y == 0:
				l.Drawn(paneTitle(style, rects[i].Width, p), rects[i].Width)
			case y-1 < len(drawn[i]):
				l.Drawn(drawn[i][y-1], rects[i].Width)
			default:
				l.Gap(rects[i].Width)
			}
		}
		lines = append(lines, l.String())
	}
	return lines
}

// Stacked writes panes one after the other, each as long as its content but with at most
// most lines. A blank line precedes each title.
func Stacked(style draw.Style, width, most int, above []string, panes []Pane) []string {
	lines := trimmed(above)
	for _, p := range panes {
		title := p.Title
		if p.Note != "" {
			title += ", " + p.Note
		}
		lines = append(lines, "", title+":")
		lines = append(lines, trimmed(p.Lines(style, width, most))...)
	}
	return lines
}

// trimmed returns lines without trailing blank ones.
func trimmed(lines []string) []string {
	n := len(lines)
	for n > 0 && strings.TrimSpace(lines[n-1]) == "" {
		n--
	}
	return slices.Clip(lines[:n])
}

func paneTitle(style draw.Style, width int, p Pane) string {
	border, title := draw.Border, draw.Title
	mark := style.Pick("─ ", "- ")
	if p.Focused {
		border, mark = draw.BorderFocused, style.Pick("━ ", "= ")
	}
	l := draw.NewLine(style, width).Add(border, mark).Add(title, p.Title).Gap(1)
	note := style.Clip(p.Note, max(l.Room()-4, 0))
	rule := style.Pick("─", "-")
	if p.Focused {
		rule = style.Pick("━", "=")
	}
	fill := l.Room()
	if note != "" {
		fill -= draw.Width(note) + 3
	}
	l.Add(border, draw.Repeat(rule, fill))
	if note != "" {
		l.Gap(1).Add(draw.Faint, note).Gap(1).Add(border, rule)
	}
	return l.String()
}
