package enis

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func open() pages.Page { return New(pages.Open{}) }

func TestFrames(t *testing.T) {
	still := func(s *pagetest.Screen) { s.Wait(3) }
	pagetest.Frames(t, "all", open, still)
	pagetest.Frames(t, "wide", open, func(s *pagetest.Screen) { s.Wide = true; s.Wait(3) })
	pagetest.FramesOf(t, "unread", pagetest.Unread, open, still)
	pagetest.FramesOf(t, "unlisted", pagetest.Unlisted, open, still)
	pagetest.Coloured(t, "all", open, still)
}

func TestAllSizes(t *testing.T) {
	pagetest.CheckAllSizes(t, func(o pages.Open) pages.Page { return New(o) }, "enis")
}

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func TestOpens(t *testing.T) {
	t.Parallel()
	const id = "eni-0b2c3d4e5f6071829"
	s := pagetest.Open(New(pages.Open{Filter: "eni=" + id}), pagetest.Fleet(), 120, 37)
	s.Wait(3)
	s.Do(keymap.In, keymap.ToNode, keymap.Subnets)
	if len(s.Opened) != 3 || s.Opened[0] != (pages.Open{Screen: "eni", Node: pagetest.Plain, ENI: id}) || s.Opened[1].Screen != "node" || s.Opened[2].Subnet == "" {
		t.Errorf("%+v", s.Opened)
	}
}
