package subnets

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func TestFrames(t *testing.T) {
	open := func() pages.Page { return New(pages.Open{Subnet: "subnet-0aa11bb22cc33dd44"}) }
	pagetest.Frames(t, "all", open, func(*pagetest.Screen) {})
	pagetest.Frames(t, "map", open, func(s *pagetest.Screen) { s.Do(keymap.In, keymap.Down, keymap.NextBlock) })
	pagetest.Frames(t, "ipv6", func() pages.Page { return New(pages.Open{Subnet: "subnet-06666666666666666"}) }, func(*pagetest.Screen) {})
	pagetest.Coloured(t, "map", open, func(s *pagetest.Screen) { s.Do(keymap.In) })
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

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "subnets") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func BenchmarkLines(b *testing.B) {
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 200, 60)
	for b.Loop() {
		s.Frame()
	}
}

func TestHeader_OfTheFleet(t *testing.T) { pagetest.WholeFleet(t, New(pages.Open{})) }
