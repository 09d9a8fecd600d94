package draw

import (
	"math"
	"strconv"
	"strings"
)

func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Cell is one cell of a map: its sign, in Unicode and in ASCII, and its colour.
type Cell struct {
	Glyph, ASCII string
	Role         Role
}

// Strip draws cells in a row, such as the addresses of a prefix.
func Strip(s Style, cells []Cell) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		j := i
		for j < len(cells) && cells[j] == cells[i] {
			j++
		}
		b.WriteString(s.Paint(cells[i].Role, Repeat(s.Pick(cells[i].Glyph, cells[i].ASCII), j-i)))
		i = j
	}
	return b.String()
}

// BlockMap shows many blocks of one kind, row by row, such as the /28s of a subnet, each in one or
// more cells. Its window follows the cursor. Call Arrange before Lines.
type BlockMap struct {
	Count  int
	Cells  func(i int, into []Cell) // the cells of a block
	Label  func(first int) string   // at the left of the row that begins with this block
	Cursor int                      // -1 if none

	Columns int // blocks in a row
	Per     int // cells of a block
}

// Most blocks in a row, cells of a block that show each of its 16 addresses, and most cells of a block.
const (
	mostColumns = 256
	each        = 16
	mostPer     = 4 * each
)

// Arrange lays the blocks out so that all rows fit and each address has a cell or, if there is no room for
// that, each block most cells; if the rows do not fit, so that most blocks are seen. A row has a power of
// two of blocks, so that it begins at a round address, and they fill the width.
func (m *BlockMap) Arrange(width, height int) {
	room := width - m.labelWidth() - 1
	m.Columns, m.Per = 1, 1
	fits := m.Count <= height
	for n := 1; n <= room && n <= mostColumns && n < 2*max(m.Count, 1); n *= 2 {
		per := min(room/n, mostPer)
		switch now := (m.Count+n-1)/n <= height; {
		case now && (!fits || min(per, each) >= min(m.Per, each)), !now && !fits:
			m.Columns, m.Per, fits = n, per, now
		}
	}
}

// Rows returns how many rows the blocks take.
func (m *BlockMap) Rows() int { return (m.Count + m.Columns - 1) / max(m.Columns, 1) }

func (m *BlockMap) labelWidth() int {
	if m.Label == nil || m.Count == 0 {
		return 0
	}
	return max(Width(m.Label(0)), Width(m.Label(m.Count-1))) + 2
}

// Lines draws the window that contains the cursor.
func (m *BlockMap) Lines(s Style, width, height int) []string {
	if width <= 0 || height <= 0 || s.Linear || m.Columns == 0 {
		return nil
	}
	label, rows := m.labelWidth(), m.Rows()
	top := max(min(max(m.Cursor, 0)/m.Columns-height/2, rows-height), 0)
	lines := make([]string, 0, height)
	cells := make([]Cell, m.Columns*m.Per)
	for y := top; y < rows && len(lines) < height; y++ {
		l := NewLine(s, width)
		first := y * m.Columns
		if label > 0 {
			l.Add(Faint, s.Fit(m.Label(first), label-2, true)).Gap(2)
		}
		end := min(first+m.Columns, m.Count)
		for i := first; i < end; i++ {
			block := cells[(i-first)*m.Per : (i-first+1)*m.Per]
			m.Cells(i, block)
			if i == m.Cursor {
				for j := range block {
					block[j].Role = Selected
				}
			}
		}
		drawn := cells[:(end-first)*m.Per]
		l.Drawn(Strip(s, drawn), len(drawn))
		lines = append(lines, l.String())
	}
	return Exactly(lines, width, height)
}
