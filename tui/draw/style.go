package draw

// Style is how to draw: the colours, and whether only ASCII may be written.
type Style struct {
	Theme *Theme
	ASCII bool

	// Linear is for screen readers: nothing is laid out side by side, and drawings that
	// only repeat a number are left out.
	Linear bool

	// Idle is for a pane without keyboard focus: its cursor is only a sign.
	Idle bool
}

// Selected returns the style of the row under the cursor: the same colours on a tint.
func (s Style) Selected() Style {
	s.Theme = s.Theme.Tinted()
	return s
}

// Paint colours a text. The text must not contain escapes or line breaks.
func (s Style) Paint(r Role, text string) string { return s.Theme.Paint(r, text) }

// Pick returns text, or ascii if only ASCII may be written.
func (s Style) Pick(text, ascii string) string {
	if s.ASCII {
		return ascii
	}
	return text
}

// Ellipsis marks where a text is cut.
func (s Style) Ellipsis() string { return s.Pick("…", "~") }

// Span is a piece of text with its colour.
type Span struct {
	Role Role
	Text string
}
