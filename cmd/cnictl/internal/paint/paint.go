// Package paint holds the colours of the command line: the 16 of the user's own terminal, by
// meaning. Colour is never the only sign of anything.
package paint

import (
	"charm.land/lipgloss/v2"

	"cnictl/tui/draw"
)

// Class is a meaning that has a colour: a role of the screens' components, which draw for the
// command line too.
type Class = draw.Role

const (
	Plain    = draw.Text
	OK       = draw.Good
	Warn     = draw.Warn
	Bad      = draw.Bad
	Dim      = draw.Faint
	Head     = draw.Header
	Assigned = draw.BarUsed
	Cooling  = draw.BarCooling
	Free     = draw.BarFree
)

// Palette paints text by class. A nil Palette paints nothing.
type Palette = *draw.Theme

// Colours is the palette of a terminal that shows colour.
func Colours() Palette {
	return draw.ThemeOf(map[Class]lipgloss.Style{
		OK:           lipgloss.NewStyle().Foreground(lipgloss.Green),
		Warn:         lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		Bad:          lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
		Dim:          lipgloss.NewStyle().Faint(true),
		Head:         lipgloss.NewStyle().Bold(true),
		Assigned:     lipgloss.NewStyle().Foreground(lipgloss.Blue),
		Cooling:      lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		Free:         lipgloss.NewStyle().Foreground(lipgloss.Green),
		draw.Node1:   lipgloss.NewStyle().Foreground(lipgloss.Cyan),
		draw.Node2:   lipgloss.NewStyle().Foreground(lipgloss.Magenta),
		draw.Node3:   lipgloss.NewStyle().Foreground(lipgloss.Blue),
		draw.Node4:   lipgloss.NewStyle().Foreground(lipgloss.BrightCyan),
		draw.Node5:   lipgloss.NewStyle().Foreground(lipgloss.Green),
		draw.Node6:   lipgloss.NewStyle().Foreground(lipgloss.BrightBlue),
		draw.Key:     lipgloss.NewStyle().Foreground(lipgloss.Cyan),
		draw.Marked:  lipgloss.NewStyle().Foreground(lipgloss.Magenta),
		draw.Accent:  lipgloss.NewStyle().Foreground(lipgloss.BrightCyan),
		draw.Match:   lipgloss.NewStyle().Foreground(lipgloss.BrightBlue),
		draw.WarnRow: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		draw.BadRow:  lipgloss.NewStyle().Foreground(lipgloss.Red),
		draw.BarRoom: lipgloss.NewStyle().Faint(true),
	})
}

// Node returns the colour of a node's lines.
func Node(name string) Class { return draw.NodeRole(name) }

// Width returns the number of cells a line takes on a terminal, ignoring colours.
func Width(s string) int { return lipgloss.Width(s) }
