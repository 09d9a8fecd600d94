package node

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func open(name string) func() pages.Page {
	return func() pages.Page { return New(pages.Open{Screen: "node", Node: name}) }
}

func TestFrames(t *testing.T) {
	still := func(*pagetest.Screen) {}
	for name, node := range map[string]string{
		"plain": pagetest.Plain, "starved": pagetest.Starved, "prefixes": pagetest.Prefixes, "ipv6": pagetest.IPv6, "cards": pagetest.Cards,
		"upstream": pagetest.Upstream, "many": pagetest.Many, "down": pagetest.Down, "windows": pagetest.Windows, "hostile": pagetest.Hostile, "absent": pagetest.Absent,
	} {
		pagetest.Frames(t, name, open(node), still)
	}
	pagetest.Frames(t, "pool", open(pagetest.Plain), func(s *pagetest.Screen) { s.Do(keymap.NextPane, keymap.PageDown) })
	pagetest.Frames(t, "zoomed", open(pagetest.Starved), func(s *pagetest.Screen) { s.Do(keymap.NextPane, keymap.Zoom) })
	pagetest.Frames(t, "ascii", open(pagetest.Prefixes), func(s *pagetest.Screen) { s.ASCII = true })
	pagetest.Coloured(t, "starved", open(pagetest.Starved), still)
}

func TestFrames_Stale(t *testing.T) {
	pagetest.Frames(t, "stale", open(pagetest.Plain), func(s *pagetest.Screen) {
		s.Deaf = true
		s.Wait(90)
	})
}

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "node") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func BenchmarkLines(b *testing.B) {
	for _, name := range []string{pagetest.Plain, pagetest.Many} {
		b.Run(name, func(b *testing.B) {
			s := pagetest.Open(open(name)(), pagetest.Fleet(), 200, 60)
			for b.Loop() {
				s.Frame()
			}
		})
	}
}
