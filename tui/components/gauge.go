package components

import (
	"math"
	"strings"

	"cnictl/daemon/fleet/show"
	"cnictl/tui/theme"
)

// Part is a share of a gauge.
type Part struct {
	Value float64
	Role  theme.Role
}

// Gauge draws the parts of a whole, and the rest as room. Print the number next to it: a
// gauge must not be the only indication. Each nonzero part is at least one cell wide while
// there is room.
func Gauge(style Style, width int, whole float64, parts ...Part) string {
	if width <= 0 {
		return ""
	}
	if style.Linear {
		return Blank(width)
	}
	var b strings.Builder
	used, sum := 0, 0.0
	for _, p := range parts {
		if p.Value <= 0 || whole <= 0 {
			continue
		}
		sum += p.Value
		end := int(math.Round(sum / whole * float64(width)))
		end = min(max(end, used+1), width)
		if end > used {
			b.WriteString(style.Paint(p.Role, repeat(sign(p.Role).Pick(style.ASCII), end-used)))
			used = end
		}
	}
	b.WriteString(style.Paint(theme.BarRoom, repeat(show.Room.Pick(style.ASCII), width-used)))
	return b.String()
}

// sign returns the sign that draws a role. Roles that are not an address state are drawn
// as used.
func sign(r theme.Role) show.Sign {
	switch r {
	case theme.BarCooling:
		return show.Cooling
	case theme.BarFree:
		return show.Free
	case theme.BarRoom:
		return show.Room
	case theme.BarOthers:
		return show.Others
	}
	return show.Used
}

// CellOf returns the cell of a strip that shows a state.
func CellOf(r theme.Role) Cell {
	s := sign(r)
	return Cell{Glyph: s.Glyph, ASCII: s.ASCII, Role: r}
}

var (
	sparkCells = [...]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	sparkPlain = [...]string{"_", ".", "-", "=", "+", "*", "#", "%"}
)

// Spark draws the newest width values, the last at the right, on a scale from 0 to top.
// NaN is a gap: a blank, not a zero.
func Spark(style Style, width int, top float64, values []float64) string {
	if width <= 0 {
		return ""
	}
	if len(values) > width {
		values = values[len(values)-width:]
	}
	cells := &sparkCells
	if style.ASCII {
		cells = &sparkPlain
	}
	var b strings.Builder
	b.Grow(3 * width)
	b.WriteString(Blank(width - len(values)))
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(cells[level(v, top, len(cells))])
	}
	return b.String()
}

// level maps a value to one of n steps; anything above zero is above the lowest.
func level(v, top float64, n int) int {
	if v <= 0 || top <= 0 {
		return 0
	}
	return min(max(int(math.Ceil(v/top*float64(n)))-1, 1), n-1)
}

func repeat(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(s, n)
}
