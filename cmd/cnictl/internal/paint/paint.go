// Package paint holds the colours of the command line: the 16 of the user's own terminal, by
// meaning. Colour is never the only sign of anything.
package paint

import "charm.land/lipgloss/v2"

// Class is a meaning that has a colour.
type Class int

const (
	Plain Class = iota
	OK
	Warn
	Bad
	Dim
	Head
	Assigned
	Cooling
	Free
)

// Palette paints text by class. The zero Palette paints nothing.
type Palette struct{ styles map[Class]lipgloss.Style }

// Colours is the palette of a terminal that shows colour.
func Colours() Palette {
	return Palette{map[Class]lipgloss.Style{
		OK:       lipgloss.NewStyle().Foreground(lipgloss.Green),
		Warn:     lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		Bad:      lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
		Dim:      lipgloss.NewStyle().Faint(true),
		Head:     lipgloss.NewStyle().Bold(true),
		Assigned: lipgloss.NewStyle().Foreground(lipgloss.Blue),
		Cooling:  lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		Free:     lipgloss.NewStyle().Foreground(lipgloss.Green),
	}}
}

// Paint paints one line of text.
func (p Palette) Paint(c Class, s string) string {
	style, ok := p.styles[c]
	if !ok || s == "" {
		return s
	}
	return style.Render(s)
}

// Width returns the number of cells a line takes on a terminal, ignoring colours.
func Width(s string) int { return lipgloss.Width(s) }
