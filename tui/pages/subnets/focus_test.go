package subnets

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestFocus_Maps: the addresses of all nodes are read only for the map.
func TestFocus_Maps(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 120, 37)
	want := func(maps bool, when string) {
		t.Helper()
		if f := s.Page.Focus(s.Context()); f.Maps != maps || f.Open != "" {
			t.Errorf("%s: %+v, want maps %v", when, f, maps)
		}
	}
	want(true, "at first")
	s.Do(keymap.Zoom)
	want(false, "the table alone")
	s.Do(keymap.NextPane)
	want(true, "the map alone")
	if f := New(pages.Open{}).Focus(s.Context()); f.Maps {
		t.Error("maps of no subnet")
	}
}
