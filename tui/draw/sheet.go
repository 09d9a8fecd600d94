package draw

import (
	"cnictl/tui/show"
)

// T makes a span.
func T(r Role, text string) Span { return Span{Role: r, Text: text} }

// Sheet is text for a pane, written top to bottom at a width. Long lines wrap at blanks,
// so that nothing a node reports is lost.
type Sheet struct {
	style Style
	width int
	lines []string
}

// NewSheet returns an empty sheet of a width.
func NewSheet(style Style, width int) *Sheet {
	return &Sheet{style: style, width: width}
}

// Style returns how the sheet is drawn.
func (s *Sheet) Style() Style { return s.style }

// Width returns the width of the sheet.
func (s *Sheet) Width() int { return s.width }

// Len returns the number of lines.
func (s *Sheet) Len() int { return len(s.lines) }

// Lines returns all lines, each of the sheet's width.
func (s *Sheet) Lines() []string { return s.lines }

// Blank adds a blank line, except at the top and after another one.
func (s *Sheet) Blank() {
	blank := Blank(s.width)
	if n := len(s.lines); n > 0 && s.lines[n-1] != blank {
		s.lines = append(s.lines, blank)
	}
}

// Head begins a section.
func (s *Sheet) Head(title, note string) {
	s.Blank()
	l := NewLine(s.style, s.width).Add(Header, title)
	if note != "" {
		l.Gap(2).Add(Faint, note)
	}
	s.lines = append(s.lines, l.String())
}

// Banner writes a line on a tint over the full width, such as the headline of a card.
func (s *Sheet) Banner(spans ...Span) {
	if s.width <= 0 {
		return
	}
	style := s.style.Selected()
	for _, l := range Flow(NewLine(style, s.width).Gap(1), 1, Text, spans) {
		s.lines = append(s.lines, l.String())
	}
}

// Add writes a line. Text that does not fit continues below, without an indent.
func (s *Sheet) Add(spans ...Span) { s.hang(0, spans) }

// labels is the width of the column of labels.
const labels = 13

// Field writes a label and its value.
func (s *Sheet) Field(label string, spans ...Span) {
	s.hang(min(labels, s.width/3), append([]Span{{Role: Faint, Text: label}}, spans...))
}

// Row writes a label, padded to a width, and its value.
func (s *Sheet) Row(label string, width int, spans ...Span) {
	s.hang(min(width, s.width/2), append([]Span{{Role: Faint, Text: label}}, spans...))
}

// Item writes a sign and a text.
func (s *Sheet) Item(sign Span, spans ...Span) {
	s.hang(2, append([]Span{sign}, spans...))
}

// Drawn adds lines that are already painted and of the sheet's width.
func (s *Sheet) Drawn(lines ...string) { s.lines = append(s.lines, lines...) }

// hang writes spans. With an indent, the first span is the label.
func (s *Sheet) hang(indent int, spans []Span) {
	if s.width <= 0 {
		return
	}
	l := NewLine(s.style, s.width)
	if indent > 0 && len(spans) > 0 {
		label := spans[0]
		label.Text = show.Printable(label.Text)
		if s.style.ASCII {
			label.Text = Plain7(label.Text)
		}
		l.Add(label.Role, s.style.Clip(label.Text, indent-1)).To(indent)
		spans = spans[1:]
	}
	for _, l := range Flow(l, indent, Text, spans) {
		s.lines = append(s.lines, l.String())
	}
}
