package app

import (
	"regexp"
	"strings"
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/source/sourcetest"
	"cnictl/tui/theme"
)

// At every width the place and the counter are apart, and a message leaves the hints of keys
// as they are.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	touching := regexp.MustCompile(`\S ?(none|[0-9,]+[–-][0-9,]+/[0-9,]+|faults only)|\S[0-9]+ marked`)
	b := newBench(t, sourcetest.New(500, 5), nil)
	b.change()
	if s := " Nodes 1–5/20"; !touching.MatchString(s) {
		t.Fatalf("%q is taken to be well", s)
	}
	for _, height := range []int{leastHeight, hintsFrom, 40} {
		for width := leastWidth; width <= 160; width++ {
			b.resize(width, height)
			for _, open := range []pages.Open{{Screen: "overview"}, {Screen: "node", Node: sourcetest.Name(3)}, {Screen: "doctor", Filter: strings.Repeat("ip%>1 ", 20)}} {
				b.toast.Text = ""
				b.open(open)
				b.change()
				if l := b.list(); l != nil && open.Screen == "overview" {
					_ = l.SetFilter("node=ip-10*") // it is good
					for range 12 {
						l.Do(keymap.Mark, b.now)
					}
					b.faults = true
				}
				status := func() string { return colourless(b.status(b.style())) }
				if s := status(); touching.MatchString(s) {
					t.Errorf("%dx%d: %q", width, height, s)
				}
				hint := b.keys.Shown(keymap.Help) + " help"
				for _, text := range []string{"short", strings.Repeat("long ", 50)} {
					b.say(theme.Info, text)
					s := status()
					if height < hintsFrom && !strings.Contains(s, hint) || !strings.Contains(s, text[:5]) || touching.MatchString(s) {
						t.Errorf("%dx%d: %q", width, height, s)
					}
				}
			}
		}
	}
}
