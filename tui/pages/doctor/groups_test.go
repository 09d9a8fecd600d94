package doctor

import (
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	groups := groupsOf(pagetest.Fleet().View(), everywhere.in)
	last := -1
	for _, g := range groups {
		r := g.Severity.Rank()
		if r < last {
			t.Errorf("%s (%s) comes after a less severe one", g.Code, g.Severity)
		}
		last = r
		if len(g.Nodes) == 0 || inventory.CauseTitle(g.Code) == "" {
			t.Errorf("%s: %d nodes, %q", g.Code, len(g.Nodes), inventory.CauseTitle(g.Code))
		}
		if g.Code == "obs/add-waiting" && (g.Times != 3 || g.Severity != document.SeverityError || g.Nodes[0].Name != pagetest.Starved) {
			t.Errorf("%+v", g)
		}
	}
	for _, g := range groupsOf(pagetest.Fleet().View(), scopeOf(pages.Open{Node: pagetest.Down}).in) {
		if len(g.Nodes) != 1 || g.Nodes[0].Name != pagetest.Down {
			t.Errorf("%s is of others too", g.Code)
		}
	}
}

func TestAllOrOne(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{Node: pagetest.Starved}), pagetest.Fleet(), 120, 37)
	m := s.Page.(*Model)
	one := len(m.findings.Rows())
	s.Do(keymap.AllNodes)
	if all := len(m.findings.Rows()); all <= one {
		t.Errorf("%d causes of all, %d of one", all, one)
	}
	s.Do(keymap.AllNodes)
	if again := len(m.findings.Rows()); again != one {
		t.Errorf("%d causes of one, first %d", again, one)
	}
}
