package whatif

import (
	"strconv"
	"strings"
	"testing"

	engine "cnictl/capacity/whatif"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func open(o pages.Open) func() pages.Page {
	return func() pages.Page { return New(o) }
}

// tried lowers WARM_ENI_TARGET to 0 and raises WARM_IP_TARGET.
func tried(s *pagetest.Screen) {
	s.Do(keymap.Less, keymap.Down, keymap.More, keymap.More)
}

func TestFrames(t *testing.T) {
	plain := open(pages.Open{Node: pagetest.Plain})
	pagetest.Frames(t, "today", plain, func(*pagetest.Screen) {})
	pagetest.Frames(t, "node", plain, tried)
	pagetest.Frames(t, "all", open(pages.Open{}), tried)
	pagetest.Frames(t, "outcome", open(pages.Open{}), func(s *pagetest.Screen) { tried(s); s.Do(keymap.NextPane, keymap.Zoom, keymap.Last) })
	pagetest.Frames(t, "ascii", open(pages.Open{Nodes: pagetest.Plain + "," + pagetest.Prefixes}), func(s *pagetest.Screen) { s.ASCII = true; tried(s) })
	pagetest.Frames(t, "ipv6", open(pages.Open{Node: pagetest.IPv6}), tried)
	pagetest.Frames(t, "upstream", open(pages.Open{Node: pagetest.Upstream}), tried)
	pagetest.Frames(t, "absent", open(pages.Open{Node: pagetest.Absent}), tried)
	pagetest.Coloured(t, "node", plain, tried)
}

func TestFrames_Empty(t *testing.T) {
	for name, fleet := range map[string]func() *pagetest.Source{"unlisted": pagetest.Unlisted, "unread": pagetest.Unread, "lost": pagetest.Lost} {
		pagetest.FramesOf(t, name, fleet, open(pages.Open{}), func(*pagetest.Screen) {})
	}
}

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "whatif") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

// TestOutcome_IsTheEngines: the totals are the sums of the engine's results per node.
func TestOutcome_IsTheEngines(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 120, 37)
	tried(s)
	m := s.Page.(*Model)
	if m.last.done != m.last.nodes || m.last.nodes < 3 || m.last.left() == 0 {
		t.Fatalf("%d of %d nodes, without %d", m.last.done, m.last.nodes, m.last.left())
	}
	var was, will sum
	for _, g := range m.sim.groups {
		was.add(engine.Forecast(g.Node, over, perMinute, g.model), g.Settings.Cooldown, g.count)
		after := m.set.to(g.Settings)
		will.add(engine.Forecast(engine.Node{Settings: after, Pods: g.Pods}, over, perMinute, g.model), after.Cooldown, g.count)
	}
	if m.last.was != was || m.last.will != will {
		t.Errorf("%+v, want %+v and %+v", m.last, was, will)
	}
	if m.last.will.held >= m.last.was.held || len(m.last.next) == 0 {
		t.Errorf("fewer spare addresses change nothing: %+v", m.last)
	}
}

// TestStep_Each: where nodes differ, a step is from each node's own value, and stops at 0. No command
// says that. What kubelet has by instance type is not offered for several nodes.
func TestStep_Each(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 120, 37)
	m := s.Page.(*Model)
	for _, r := range m.table.Rows() {
		if r.name == maxPods {
			t.Error("max-pods of the fleet")
		}
	}
	s.Do(keymap.First, keymap.Down, keymap.More)
	if r, _ := m.table.Row(); r.name != "WARM_IP_TARGET" || r.changed != "each +1" {
		t.Fatalf("%+v", r)
	}
	for _, g := range m.sim.groups {
		if got := m.set.to(g.Settings).WarmIP; got != g.Settings.WarmIP+1 {
			t.Errorf("%d, from %d", got, g.Settings.WarmIP)
		}
	}
	if m.command() != "" || m.patch() != "" {
		t.Errorf("%q, %q", m.command(), m.patch())
	}
	s.Do(keymap.Less)
	if len(m.set) > 0 {
		t.Errorf("stepped back: %v", m.set)
	}
	s.Do(keymap.TenLess, keymap.TenLess)
	for _, g := range m.sim.groups {
		if got := m.set.to(g.Settings).WarmIP; got != 0 {
			t.Errorf("%d, from %d", got, g.Settings.WarmIP)
		}
	}
}

// TestExhausted: the plan says when it assumes room that is not there now.
func TestExhausted(t *testing.T) {
	t.Parallel()
	none, some := 0, 3
	for name, x := range map[string]struct {
		available []*int
		want      int
	}{"no subnet": {nil, 0}, "unknown": {[]*int{nil}, 0}, "full": {[]*int{&none, &none}, 2}, "one has room": {[]*int{&none, &some}, 0}} {
		n := &store.Node{}
		n.Summary = &introspect.Summary{}
		for i, free := range x.available {
			n.Summary.Subnets = append(n.Summary.Subnets, introspect.Subnet{ID: strconv.Itoa(i), Available: free})
		}
		if got := exhausted(n); len(got) != x.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestReset: a value that is back to today's is no change.
func TestReset(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{Node: pagetest.Plain}), pagetest.Fleet(), 120, 37)
	m := s.Page.(*Model)
	for name, keys := range map[string][]string{
		"stepped back": {keymap.More, keymap.Less}, "reset": {keymap.TenMore, keymap.Reset}, "all": {keymap.More, keymap.Down, keymap.TenMore, keymap.ResetAll},
	} {
		s.Do(keys...)
		if len(m.set) > 0 || m.command() != "" || m.last.was != m.last.will {
			t.Errorf("%s: %v, %q", name, m.set, m.command())
		}
	}
	s.Do(keymap.First, keymap.Down, keymap.TenMore)
	if got, want := m.command(), "cnictl capacity whatif "+pagetest.Plain+" --set WARM_IP_TARGET="; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %s", got, want)
	}
	if !strings.Contains(m.patch(), "- name: WARM_IP_TARGET") {
		t.Errorf("patch %q", m.patch())
	}
}

// TestGather_NewestSettingsWin: keys pressed during a simulation are simulated after it, and nothing
// is simulated twice.
func TestGather_NewestSettingsWin(t *testing.T) {
	t.Parallel()
	fleet := pagetest.NewSource(300, 2)
	s := pagetest.Open(New(pages.Open{}), fleet, 120, 37)
	m := s.Page.(*Model)
	runs := len(m.sim.runs)
	if runs == 0 || m.last.done != m.last.nodes {
		t.Fatalf("%d runs, %d of %d nodes", runs, m.last.done, m.last.nodes)
	}
	m.Update(s.Context(), pages.Do{Action: keymap.TenMore})
	first := m.Gather(s.Context())
	m.Update(s.Context(), pages.Do{Action: keymap.ResetAll})
	if m.Gather(s.Context()) != nil {
		t.Fatal("two commands have the simulation")
	}
	m.Update(s.Context(), first())
	if m.last.done == m.last.nodes {
		t.Fatal("all nodes in one command")
	}
	begun := len(m.sim.runs)
	if begun > runs+runsPerStep {
		t.Errorf("%d runs in a command", begun-runs)
	}
	m.Update(s.Context(), m.Gather(s.Context())())
	if m.last.done != m.last.nodes || len(m.sim.runs) != begun || m.Gather(s.Context()) != nil {
		t.Errorf("%d of %d nodes, %d runs", m.last.done, m.last.nodes, len(m.sim.runs)-begun)
	}
}

// BenchmarkKey measures a key press on the screen of 5,000 nodes up to the picture. The simulation
// that it starts runs concurrently.
func BenchmarkKey(b *testing.B) {
	s := pagetest.Open(New(pages.Open{}), pagetest.NewSource(5000, 2), 200, 57)
	m := s.Page.(*Model)
	b.ReportAllocs()
	b.ReportMetric(float64(len(m.sim.groups)), "groups")
	for i := 0; b.Loop(); i++ {
		m.Update(s.Context(), pages.Do{Action: []string{keymap.More, keymap.Less}[i%2]})
		m.Gather(s.Context())
		m.busy = false
		s.Frame()
	}
}

// BenchmarkStep measures a command when everything is already simulated: it collects the nodes and
// sums up.
func BenchmarkStep(b *testing.B) {
	f := pagetest.NewSource(5000, 2)
	s := pagetest.Open(New(pages.Open{}), f, 200, 57)
	m := s.Page.(*Model)
	for b.Loop() {
		m.sim.take(f.View(), m.in)
		m.sim.step(m.set)
	}
}
