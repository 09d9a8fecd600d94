// Package paint holds the colours of the command line: the 16 of the user's own terminal, by
// meaning. Colour is never the only sign of anything.
package paint

import (
	"charm.land/lipgloss/v2"

	"cnictl/tui/theme"
)

// Class is a meaning that has a colour: a role of the screens' components, which draw for the
// command line too.
type Class = theme.Role

const (
	Plain    = theme.Text
	OK       = theme.Good
	Warn     = theme.Warn
	Bad      = theme.Bad
	Dim      = theme.Faint
	Head     = theme.Header
	Assigned = theme.BarUsed
	Cooling  = theme.BarCooling
	Free     = theme.BarFree
)

// Palette paints text by class. A nil Palette paints nothing.
type Palette = *theme.Theme

// Colours is the palette of a terminal that shows colour.
func Colours() Palette {
	return theme.Of(map[Class]lipgloss.Style{
		OK:            lipgloss.NewStyle().Foreground(lipgloss.Green),
		Warn:          lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		Bad:           lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
		Dim:           lipgloss.NewStyle().Faint(true),
		Head:          lipgloss.NewStyle().Bold(true),
		Assigned:      lipgloss.NewStyle().Foreground(lipgloss.Blue),
		Cooling:       lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		Free:          lipgloss.NewStyle().Foreground(lipgloss.Green),
		theme.Key:     lipgloss.NewStyle().Foreground(lipgloss.Cyan),
		theme.Marked:  lipgloss.NewStyle().Foreground(lipgloss.Magenta),
		theme.Accent:  lipgloss.NewStyle().Foreground(lipgloss.BrightCyan),
		theme.Match:   lipgloss.NewStyle().Foreground(lipgloss.BrightBlue),
		theme.WarnRow: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		theme.BadRow:  lipgloss.NewStyle().Foreground(lipgloss.Red),
		theme.BarRoom: lipgloss.NewStyle().Faint(true),
	})
}

// Node returns the colour of a node's lines.
func Node(name string) Class { return theme.OfNode(name) }

// Width returns the number of cells a line takes on a terminal, ignoring colours.
func Width(s string) int { return lipgloss.Width(s) }
