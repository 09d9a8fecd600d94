package components

import (
	"math"
	"strconv"
	"strings"

	"cnictl/tui/theme"
)

func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Strip draws cells in a row, such as the addresses of a prefix.
func Strip(s Style, cells []Cell) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		j := i
		for j < len(cells) && cells[j] == cells[i] {
			j++
		}
		b.WriteString(s.Paint(cells[i].Role, repeat(s.Pick(cells[i].Glyph, cells[i].ASCII), j-i)))
		i = j
	}
	return b.String()
}

// BlockMap shows many cells of one kind, row by row, such as the /28s of a subnet. Its
// window follows the cursor.
type BlockMap struct {
	Count  int
	Cell   func(i int) Cell
	Label  func(first int) string // at the left of the row that begins with this cell
	Cursor int                    // -1 if none
}

// Columns returns how many cells a row of a width has: a power of two, so that rows begin
// at round addresses.
func (m BlockMap) Columns(width int) int {
	room := width - m.labelWidth() - 1
	n := 1
	for n*2 <= room && n < 256 {
		n *= 2
	}
	return n
}

func (m BlockMap) labelWidth() int {
	if m.Label == nil || m.Count == 0 {
		return 0
	}
	return max(Width(m.Label(0)), Width(m.Label(m.Count-1))) + 2
}

// Lines draws the window that contains the cursor.
func (m BlockMap) Lines(s Style, width, height int) []string {
	if width <= 0 || height <= 0 || s.Linear {
		return nil
	}
	columns, label := m.Columns(width), m.labelWidth()
	rows := (m.Count + columns - 1) / columns
	top := max(min(max(m.Cursor, 0)/columns-height/2, rows-height), 0)
	lines := make([]string, 0, height)
	for y := top; y < rows && len(lines) < height; y++ {
		l := NewLine(s, width)
		first := y * columns
		if label > 0 {
			l.Add(theme.Faint, s.Fit(m.Label(first), label-2, true)).Gap(2)
		}
		end := min(first+columns, m.Count)
		for i := first; i < end; {
			c := m.Cell(i)
			j := i + 1
			for j < end && i != m.Cursor && j != m.Cursor && m.Cell(j) == c {
				j++
			}
			role := c.Role
			if i == m.Cursor {
				role = theme.Selected
			}
			l.Add(role, repeat(s.Pick(c.Glyph, c.ASCII), j-i))
			i = j
		}
		lines = append(lines, l.String())
	}
	return Exactly(lines, width, height)
}
