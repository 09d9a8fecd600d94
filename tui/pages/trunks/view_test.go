package trunks

import (
	"testing"

	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
	"cnictl/tui/sourcetest"
)

func TestFrames(t *testing.T) {
	open := func() pages.Page { return New(pages.Open{Node: pagetest.Prefixes}) }
	wait := func(s *pagetest.Screen) { s.Wait(2) }
	pagetest.Frames(t, "all", open, wait)
	pagetest.Frames(t, "asking", open, func(s *pagetest.Screen) { s.Deaf = true; s.Wait(2) })
	pagetest.Coloured(t, "all", open, wait)
}

func TestFrames_Empty(t *testing.T) {
	open := func() pages.Page { return New(pages.Open{}) }
	still := func(*pagetest.Screen) {}
	pagetest.FramesOf(t, "unlisted", pagetest.Unlisted, open, still)
	pagetest.FramesOf(t, "unread", pagetest.Unread, open, still)
	pagetest.FramesOf(t, "lost", pagetest.Lost, open, still)
	pagetest.FramesOf(t, "nothing", pagetest.Bare, open, still)
	pagetest.FramesOf(t, "many", func() *sourcetest.Fleet { return sourcetest.New(500, 2) }, open, func(s *pagetest.Screen) { s.Wait(2) })
}

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "trunks") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func BenchmarkLines(b *testing.B) {
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 200, 60)
	s.Wait(2)
	for b.Loop() {
		s.Frame()
	}
}

func TestHeader_OfTheFleet(t *testing.T) { pagetest.WholeFleet(t, New(pages.Open{})) }
