package overview

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/doctor"
	"cnictl/tui/pages/pagetest"
)

func open() pages.Page { return New(pages.Open{}) }

func TestFrames(t *testing.T) {
	still := func(*pagetest.Screen) {}
	pagetest.Frames(t, "kinds", open, still)
	pagetest.Coloured(t, "kinds", open, still)
	pagetest.Frames(t, "ascii", open, func(s *pagetest.Screen) { s.ASCII = true })
	pagetest.FramesOf(t, "many", func() *pagetest.Source { return pagetest.NewSource(500, 2) }, open, still)
	pagetest.FramesOf(t, "many-end", func() *pagetest.Source { return pagetest.NewSource(500, 2) }, open, func(s *pagetest.Screen) { s.Do(keymap.Last) })
	pagetest.FramesOf(t, "reading", pagetest.Unlisted, open, still)
	pagetest.FramesOf(t, "empty", pagetest.Emptied, open, still)
	pagetest.Frames(t, "old", open, func(s *pagetest.Screen) { s.Wait(90) })
}

func TestAllSizes(t *testing.T) {
	pagetest.CheckAllSizes(t, func(o pages.Open) pages.Page { return New(o) }, "overview")
}

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

// TestDoctorsScope: the doctor examines what the list shows (all nodes, those matching the filter, or
// the marked ones) and says which.
func TestDoctorsScope(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		act  func(*Page, *pagetest.Screen)
		want string
	}{
		{func(*Page, *pagetest.Screen) {}, "Doctor (all nodes)"},
		{func(p *Page, _ *pagetest.Screen) { _ = p.table.SetFilter("state!=ok") }, "Doctor (filter state!=ok)"},
		{func(p *Page, s *pagetest.Screen) {
			_ = p.table.SetFilter("state!=ok")
			s.Do(keymap.Mark, keymap.Mark)
		}, "Doctor (2 selected nodes)"},
	} {
		p := New(pages.Open{})
		s := pagetest.Open(p, pagetest.Fleet(), 120, 37)
		row.act(p, s)
		shown, _ := p.table.Found()
		if n := p.table.Marked(); n > 0 {
			shown = n
		}
		to, _ := pages.Jump(p, s.Context(), keymap.Doctor)
		d := doctor.New(to)
		all := pagetest.Open(d, pagetest.Fleet(), 120, 37)
		all.Wait(2)
		if d.Title() != row.want {
			t.Errorf("%q, want %q", d.Title(), row.want)
		}
		if seen := len(d.Focus(pages.Context{}).Visible); seen > shown {
			t.Errorf("%s: %d nodes of %d", d.Title(), seen, shown)
		}
	}
}
