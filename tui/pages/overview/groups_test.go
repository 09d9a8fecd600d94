package overview

import (
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestGroups: the subtotals of every grouping add up to the fleet, and a group opens its nodes.
func TestGroups(t *testing.T) {
	t.Parallel()
	p := New(pages.Open{})
	s := pagetest.Open(p, pagetest.Fleet(), 120, 37)
	all := p.table.Rows()
	errors, used := 0, 0
	for _, n := range all {
		if n.Severity.Harms() {
			errors++
		}
		if n.Known {
			used += n.Assigned
		}
	}
	seen := 0
	for s.Do(keymap.GroupBy); p.by > 0; s.Do(keymap.GroupBy) {
		seen++
		nodes, bad, taken := 0, 0, 0
		for _, g := range p.groups.Rows() {
			nodes, bad, taken = nodes+g.nodes, bad+g.errors, taken+g.pool.Assigned
		}
		if nodes != len(all) || bad != errors || taken != used {
			t.Errorf("by %s: %d nodes, %d errors, %d used; want %d, %d, %d", groupings[p.by].title, nodes, bad, taken, len(all), errors, used)
		}
		if p.Row(pages.Context{}) != nil || len(p.Focus(pages.Context{}).Visible) > 0 {
			t.Errorf("by %s: a node is under the cursor", groupings[p.by].title)
		}
	}
	if seen < 3 {
		t.Errorf("%d groupings", seen)
	}
	for s.Do(keymap.GroupBy); groupings[p.by].column != "cause"; s.Do(keymap.GroupBy) {
	}
	g, _ := p.groups.Row()
	if at, ok := p.At(pages.Context{}); !ok || at.Filter != "cause="+g.name {
		t.Errorf("the doctor is opened for %q", at.Filter)
	}
	s.Do(keymap.In)
	if shown, _ := p.table.Found(); p.by > 0 || shown != g.nodes || g.worst.Severity != document.SeverityCritical && g.errors == 0 {
		t.Errorf("%d nodes of %+v", shown, g)
	}
	// Out of the group, and out of the groups.
	by := groupings[3].column
	for s.Do(keymap.GroupBy); groupings[p.by].column != by; s.Do(keymap.GroupBy) {
	}
	_ = p.table.SetFilter("state!=ok")
	p.groups.Do(keymap.Last, s.Context().Clock)
	last, _ := p.groups.Row()
	s.Do(keymap.In)
	if want := "Nodes by " + groupings[3].title + ": " + last.name; p.Title() != want {
		t.Errorf("the title is %q, want %q", p.Title(), want)
	}
	if !p.Leave(s.Context()) || p.by != 3 || p.table.Filter() != "state!=ok" {
		t.Fatalf("out of a group: grouped by %d, filter %q", p.by, p.table.Filter())
	}
	if g, _ := p.groups.Row(); g.name != last.name {
		t.Errorf("back at %s, want %s", g.name, last.name)
	}
	if !p.Leave(s.Context()) || p.by != 0 || p.Leave(s.Context()) {
		t.Error("the groups are not left")
	}
}
