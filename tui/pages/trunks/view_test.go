package trunks

import (
	"slices"
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

// TestFaults: a node is faulty as soon as the list of pods shows that one of them waits, wherever the cursor is.
func TestFaults(t *testing.T) {
	m := New(pages.Open{Node: pagetest.Hostile}).(*Model)
	s := pagetest.Open(m, pagetest.Fleet(), 120, 37)
	s.Wait(2)
	m.table.SetFaults(true)
	s.Frame()
	if shown := m.table.Visible(); !slices.ContainsFunc(shown, func(r *row) bool { return r.Node == pagetest.Prefixes && waiting(r) == 1 }) {
		t.Errorf("%d nodes have faults, and none of them is that of a pod that waits", len(shown))
	}
	if m.docs.Node == pagetest.Prefixes {
		t.Error("the node with the pod is under the cursor")
	}
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
