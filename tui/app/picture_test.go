package app

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"cnictl/testenv/tour"
	"cnictl/tui/pages"
	"cnictl/tui/theme"
)

// TestDocs_Picture makes the picture of the README: the node that waits for addresses, as
// a terminal with 24-bit colours shows it.
func TestDocs_Picture(t *testing.T) {
	t.Parallel()
	const file = "docs/tui.svg"
	b := toured(t, 120, 32, func(o *Options) { o.Theme = theme.Dark })
	b.send(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	b.goTo(t, pages.Open{Screen: "node", Node: tour.Starved})
	b.answer(t)
	tour.NewPages(t, file).Whole(file, tour.SVG(b.frame(t, colorprofile.TrueColor)))
}
