package doctor

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func TestFrames(t *testing.T) {
	open := func() pages.Page { return New(pages.Open{}) }
	wait := func(s *pagetest.Screen) { s.Wait(2) }
	pagetest.Frames(t, "all", open, wait)
	pagetest.Frames(t, "one", func() pages.Page { return New(pages.Open{Node: pagetest.Starved}) }, wait)
	pagetest.Frames(t, "evidence", open, func(s *pagetest.Screen) { s.Do(keymap.Down, keymap.PrevPane, "zoom"); s.Wait(2) })
	pagetest.Frames(t, "well", func() pages.Page { return New(pages.Open{Node: pagetest.Absent}) }, wait)
	pagetest.Coloured(t, "all", open, wait)
}

func TestFrames_Empty(t *testing.T) {
	open := func() pages.Page { return New(pages.Open{}) }
	still := func(*pagetest.Screen) {}
	pagetest.FramesOf(t, "unlisted", pagetest.Unlisted, open, still)
	pagetest.FramesOf(t, "unread", pagetest.Unread, open, still)
	pagetest.FramesOf(t, "lost", pagetest.Lost, open, still)
	pagetest.FramesOf(t, "nothing", pagetest.Bare, open, still)
	pagetest.FramesOf(t, "many", func() *pagetest.Source { return pagetest.NewSource(500, 2) }, open, func(s *pagetest.Screen) { s.Wait(2) })
}

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "doctor") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func BenchmarkLines(b *testing.B) {
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 200, 60)
	s.Wait(2)
	for b.Loop() {
		s.Frame()
	}
}
