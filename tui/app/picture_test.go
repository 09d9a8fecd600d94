package app

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"cnictl/testenv/text/tour"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// TestDocs_Picture generates the pictures of the README, as shown by a terminal with 24-bit
// colours: the nodes, one of which waits for addresses, and what fewer spare addresses save.
func TestDocs_Picture(t *testing.T) {
	t.Parallel()
	for file, x := range map[string]struct {
		width, height int
		open          pages.Open
		keys          []string
	}{
		"docs/tui.svg":    {120, 32, pages.Open{Screen: "overview"}, nil},
		"docs/whatif.svg": {110, 21, pages.Open{Screen: "whatif", Node: tour.OverWarm}, []string{"left", "left", "left", "down", "right", "right", "right", "right", "right"}},
	} {
		b := toured(t, x.width, x.height, func(o *Options) { o.Theme = draw.Dark })
		b.send(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
		b.goTo(t, x.open)
		b.press(x.keys...)
		b.answer(t)
		tour.NewPages(t, file).Replace(file, tour.SVG(b.frame(t, colorprofile.TrueColor)))
	}
}
