package app

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestStatusLine: at every width there is a gap between the place and the counter, and a message
// leaves the breadcrumb and the keys as they are.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	touching := regexp.MustCompile(`\S ?(0 of|[0-9,]+[–-][0-9,]+/[0-9,]+|faults only)|\S[0-9]+ marked`)
	b := newBench(t, pagetest.NewSource(500, 5), nil)
	b.change()
	if s := " Nodes 1–5/20"; !touching.MatchString(s) {
		t.Fatalf("%q is taken to be well", s)
	}
	for _, height := range []int{leastHeight, hintsFrom, 40} {
		for width := leastWidth; width <= 160; width++ {
			b.resize(width, height)
			for _, open := range []pages.Open{{Screen: "overview"}, {Screen: "node", Node: pagetest.NodeName(3)}, {Screen: "doctor", Filter: strings.Repeat("ip%>1 ", 20)}} {
				b.toast.Text = ""
				b.open(open)
				b.change()
				if l := b.list(); l != nil && open.Screen == "overview" {
					_ = l.SetFilter("node=ip-10*") // a valid filter
					for range 12 {
						l.Do(keymap.Mark, b.now)
					}
					l.SetFaults(true)
				}
				status := func() string { return colourless(b.status(b.style())) }
				if s := status(); touching.MatchString(s) {
					t.Errorf("%dx%d: %q", width, height, s)
				}
				before := status()
				for _, text := range []string{"short", strings.Repeat("long ", 50)} {
					b.say(draw.Info, text)
					if s := status(); s[:8] != before[:8] || touching.MatchString(s) || height < hintsFrom && !strings.Contains(s, b.keys.Shown(keymap.Help)+" help") {
						t.Errorf("%dx%d: %q, before %q", width, height, s, before)
					}
					if lines := b.lines(); len(lines) != height || !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(colourless(l), " "+text[:5]) }) {
						t.Errorf("%dx%d: %d lines, or none with %q", width, height, len(lines), text)
					}
				}
			}
		}
	}
}
