package lists

import (
	"slices"
	"testing"

	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func TestTrunks(t *testing.T) {
	open := func() pages.Page { return NewTrunks(pages.Open{Node: pagetest.Prefixes}) }
	wait := func(s *pagetest.Screen) { s.Wait(2) }
	pagetest.Frames(t, "all", open, wait)
	pagetest.Frames(t, "asking", open, func(s *pagetest.Screen) { s.Deaf = true; s.Wait(2) })
	pagetest.Coloured(t, "all", open, wait)
}

func TestTrunks_Empty(t *testing.T) {
	open := func() pages.Page { return NewTrunks(pages.Open{}) }
	still := func(*pagetest.Screen) {}
	pagetest.FramesOf(t, "unlisted", pagetest.Unlisted, open, still)
	pagetest.FramesOf(t, "unread", pagetest.Unread, open, still)
	pagetest.FramesOf(t, "lost", pagetest.Lost, open, still)
	pagetest.FramesOf(t, "nothing", pagetest.Bare, open, still)
	pagetest.FramesOf(t, "many", func() *pagetest.Source { return pagetest.NewSource(500, 2) }, open, func(s *pagetest.Screen) { s.Wait(2) })
}

// TestTrunks_Faults: a node is faulty as soon as the list of pods shows that one of them waits, wherever the cursor is.
func TestTrunks_Faults(t *testing.T) {
	m := NewTrunks(pages.Open{Node: pagetest.Hostile}).(*Trunks)
	s := pagetest.Open(m, pagetest.Fleet(), 120, 37)
	s.Wait(2)
	m.table.SetFaults(true)
	s.Frame()
	if shown := m.table.Visible(); !slices.ContainsFunc(shown, func(r *trunk) bool { return r.Node == pagetest.Prefixes && r.waiting() == 1 }) {
		t.Errorf("%d nodes have faults, and none of them is that of a pod that waits", len(shown))
	}
	if m.docs.Node == pagetest.Prefixes {
		t.Error("the node with the pod is under the cursor")
	}
}

func TestTrunks_AllSizes(t *testing.T) { pagetest.CheckAllSizes(t, NewTrunks, "trunks") }

func TestTrunks_Keys(t *testing.T) { pagetest.Keys(t, NewTrunks(pages.Open{})) }

func BenchmarkTrunks(b *testing.B) {
	s := pagetest.Open(NewTrunks(pages.Open{}), pagetest.Fleet(), 200, 60)
	s.Wait(2)
	for b.Loop() {
		s.Frame()
	}
}

func TestTrunks_HeaderIsOfTheFleet(t *testing.T) { pagetest.WholeFleet(t, NewTrunks(pages.Open{})) }
