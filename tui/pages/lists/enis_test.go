package lists

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func openENIs() pages.Page { return NewENIs(pages.Open{}) }

func TestENIs(t *testing.T) {
	still := func(s *pagetest.Screen) { s.Wait(3) }
	pagetest.Frames(t, "all", openENIs, still)
	pagetest.Frames(t, "wide", openENIs, func(s *pagetest.Screen) { s.Wide = true; s.Wait(3) })
	pagetest.FramesOf(t, "unread", pagetest.Unread, openENIs, still)
	pagetest.FramesOf(t, "unlisted", pagetest.Unlisted, openENIs, still)
	pagetest.Coloured(t, "all", openENIs, still)
}

func TestENIs_AllSizes(t *testing.T) {
	pagetest.CheckAllSizes(t, func(o pages.Open) pages.Page { return NewENIs(o) }, "enis")
}

func TestENIs_Keys(t *testing.T) { pagetest.Keys(t, NewENIs(pages.Open{})) }

func TestENIs_Opens(t *testing.T) {
	t.Parallel()
	const id = "eni-0b2c3d4e5f6071829"
	s := pagetest.Open(NewENIs(pages.Open{Filter: "eni=" + id}), pagetest.Fleet(), 120, 37)
	s.Wait(3)
	s.Do(keymap.In, keymap.ToNode, keymap.Subnets)
	if len(s.Opened) != 3 || s.Opened[0] != (pages.Open{Screen: "eni", Node: pagetest.Plain, ENI: id}) || s.Opened[1].Screen != "node" || s.Opened[2].Subnet == "" {
		t.Errorf("%+v", s.Opened)
	}
}
