package components

import (
	"strings"

	"cnictl/tui/theme"
)

// Line writes one line of an exact width piece by piece. What does not fit is cut.
type Line struct {
	style Style
	width int
	used  int
	b     strings.Builder
}

// NewLine begins a line.
func NewLine(style Style, width int) *Line {
	l := &Line{style: style, width: max(width, 0)}
	l.b.Grow(width + 64)
	return l
}

// Add writes a text.
func (l *Line) Add(r theme.Role, text string) *Line {
	if l.used >= l.width || text == "" {
		return l
	}
	if l.style.ASCII {
		text = Plain7(text)
	}
	text = l.style.Clip(text, l.width-l.used)
	l.b.WriteString(l.style.Paint(r, text))
	l.used += Width(text)
	return l
}

// Drawn writes what is painted already and takes width cells; it is left out when there
// is no room for all of it.
func (l *Line) Drawn(painted string, width int) *Line {
	if width > l.width-l.used {
		return l.Gap(l.width - l.used)
	}
	l.b.WriteString(painted)
	l.used += width
	return l
}

// Gap writes blanks.
func (l *Line) Gap(n int) *Line {
	n = min(n, l.width-l.used)
	if n > 0 {
		l.b.WriteString(l.style.Paint(theme.Text, Blank(n))) // a tint has no holes
		l.used += n
	}
	return l
}

// To writes blanks up to a column.
func (l *Line) To(column int) *Line { return l.Gap(column - l.used) }

// Room is how many cells are left.
func (l *Line) Room() int { return l.width - l.used }

// String is the line, filled with blanks to its width.
func (l *Line) String() string {
	l.Gap(l.width - l.used)
	return l.b.String()
}

// Exactly gives lines exactly a height: cut, or filled with blank lines of a width.
func Exactly(lines []string, width, height int) []string {
	if height <= 0 {
		return nil
	}
	if len(lines) > height {
		return lines[:height]
	}
	blank := Blank(width)
	for len(lines) < height {
		lines = append(lines, blank)
	}
	return lines
}
