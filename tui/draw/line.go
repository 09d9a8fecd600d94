package draw

import (
	"strings"

	"cnictl/tui/show"
)

// Line builds one line of an exact width piece by piece. Text that does not fit is cut.
type Line struct {
	style Style
	width int
	used  int
	b     strings.Builder
}

// NewLine returns an empty line.
func NewLine(style Style, width int) *Line {
	l := &Line{style: style, width: max(width, 0)}
	l.b.Grow(width + 64)
	return l
}

// Add writes text in the style of a role, and escapes what could control the terminal.
func (l *Line) Add(r Role, text string) *Line {
	if l.used >= l.width || text == "" {
		return l
	}
	text = show.Printable(text)
	if l.style.ASCII {
		text = Plain7(text)
	}
	text = l.style.Clip(text, l.width-l.used)
	l.b.WriteString(l.style.Paint(r, text))
	l.used += Width(text)
	return l
}

// Drawn writes painted text of width cells. If it does not fit, blanks fill the line
// instead.
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
		l.b.WriteString(l.style.Paint(Text, Blank(n))) // painted, so that a tint has no holes
		l.used += n
	}
	return l
}

// To writes blanks up to a column.
func (l *Line) To(column int) *Line { return l.Gap(column - l.used) }

// Room returns how many cells are left.
func (l *Line) Room() int { return l.width - l.used }

// String returns the line, padded with blanks to its width.
func (l *Line) String() string {
	l.Gap(l.width - l.used)
	return l.b.String()
}

// Exactly cuts lines to a height, or pads them with blank lines of a width.
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
