package rules

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// living is a node with complete pods.
type living struct {
	view netstate.State
	pods []WorkloadPod
}

func newLiving(r *rand.Rand, count int) *living {
	l := &living{view: netstate.State{Links: []netstate.Link{{Name: "eth0", Index: 2, Flags: netstate.Up}, {Name: "eni-of-others", Kind: "veth", Index: 3}}}}
	for i := range count {
		a := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		if i%5 == 4 {
			a = netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)})
		}
		p := WorkloadPod{Address: a, Owner: fmt.Sprint("sandbox-", i), Hash: netnames.Hash("default", fmt.Sprint("p-", i), 0), Table: []int{254, 2, 10101}[i%3]}
		prefix := netnames.DefaultVethPrefix
		if i%4 == 3 {
			vlan := i%netnames.MaxVLAN + 1
			p.Table, _ = netnames.BranchTable(vlan)
			p.Branch = &Branch{VLAN: vlan, MAC: netstate.MAC{2, 1, byte(i)}, Gateway: netip.MustParseAddr("10.0.0.1"), Trunk: 2}
			if a.Is6() {
				p.Branch.Gateway = netnames.BranchGatewayIPv6()
			}
			if r.IntN(2) == 0 {
				prefix = netnames.BranchVethPrefix
			}
		}
		l.pods = append(l.pods, p)
		l.view.Links = append(l.view.Links, netstate.Link{Name: prefix + p.Hash, Kind: "veth", Index: int32(100 + i), MAC: netstate.MAC{2, 0, byte(i)}, Flags: netstate.Up})
	}
	// Repairs of settled pods create what a complete pod has.
	settled := slices.Clone(l.pods)
	for i := range settled {
		settled[i].Settled = true
	}
	var w Baseline
	for range 4 {
		l.apply(w.Diff(l.view, settled, unknownMAC))
	}
	return l
}

func unknownMAC(int32) (netstate.MAC, bool) { return netstate.MAC{}, false }

// apply performs repairs as the kernel would.
func (l *living) apply(repairs []Repair) {
	for _, r := range repairs {
		switch r.Do {
		case netstate.SetUp:
			l.link(r.Link.Index).Flags |= netstate.Up
		case netstate.SetMAC:
			l.link(r.Link.Index).MAC = r.Link.MAC
		case netstate.AddVLAN:
			made := r.Link
			made.Kind, made.Index, made.Flags = "vlan", int32(1000+made.VLAN), netstate.Up
			l.view.Links = append(l.view.Links, made)
		case netstate.PutRoute:
			l.view.Routes = slices.DeleteFunc(l.view.Routes, func(o netstate.Route) bool { return o.Dst == r.Route.Dst && o.Table == r.Route.Table })
			l.view.Routes = append(l.view.Routes, r.Route)
		case netstate.AddRule:
			l.view.Rules = append(l.view.Rules, r.Rule)
		case netstate.DelRule:
			if i := slices.Index(l.view.Rules, r.Rule); i >= 0 {
				l.view.Rules = slices.Delete(l.view.Rules, i, i+1)
			}
		}
	}
}

func (l *living) link(index int32) *netstate.Link {
	i := slices.IndexFunc(l.view.Links, func(o netstate.Link) bool { return o.Index == index })
	return &l.view.Links[i]
}

// wipe removes what network daemons remove, and more.
func (l *living) wipe(r *rand.Rand) {
	some := func(int) bool { return r.IntN(3) == 0 }
	l.view.Rules = slices.DeleteFunc(l.view.Rules, func(netstate.Rule) bool { return some(0) })
	l.view.Routes = slices.DeleteFunc(l.view.Routes, func(netstate.Route) bool { return some(0) })
	l.view.Links = slices.DeleteFunc(l.view.Links, func(o netstate.Link) bool { return o.Kind == "vlan" && some(0) })
	for i := range l.view.Links {
		if o := &l.view.Links[i]; o.Index >= 100 && some(0) {
			o.Flags, o.MAC[5] = 0, 9
		}
	}
	if r.IntN(2) == 0 && len(l.pods) > 0 { // routes a pod through another table
		p := l.pods[r.IntN(len(l.pods))]
		l.view.Rules = append(l.view.Rules, netstate.Rule{Priority: netnames.RuleFromPod, From: netstate.Only(p.Address), Table: 77, IPv6: p.Address.Is6()})
	}
}

func (l *living) clone() *living {
	return &living{view: netstate.State{Links: slices.Clone(l.view.Links), Routes: slices.Clone(l.view.Routes), Rules: slices.Clone(l.view.Rules)}, pods: slices.Clone(l.pods)}
}

// texts returns a view's rules, routes and links, sorted.
func texts(v netstate.State) []string {
	var out []string
	for _, o := range v.Links {
		out = append(out, fmt.Sprintf("%+v", o))
	}
	for _, o := range v.Routes {
		out = append(out, fmt.Sprintf("%+v", o))
	}
	for _, o := range v.Rules {
		out = append(out, o.String())
	}
	slices.Sort(out)
	return out
}

// TestBaseline_BringsBack: whatever complete pods lose is restored after a few looks,
// nothing else changes, and then nothing is left to do.
func TestBaseline_BringsBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := newLiving(r, 1+r.IntN(20))
		var w Baseline
		if got := w.Diff(l.view, l.pods, unknownMAC); len(got) > 0 || slices.ContainsFunc(l.pods, func(p WorkloadPod) bool { return !w.Has(p.Address) }) {
			t.Fatalf("seed %d: not all pods are whole, repairs %v", seed, got)
		}
		before := texts(l.view)
		l.wipe(r)
		for range 3 {
			l.apply(w.Diff(l.view, l.pods, unknownMAC))
		}
		if got := w.Diff(l.view, l.pods, unknownMAC); len(got) > 0 {
			t.Fatalf("seed %d: still %v", seed, got)
		}
		if after := texts(l.view); !slices.Equal(after, before) && !onlyForeign(before, after) {
			t.Fatalf("seed %d:\nbefore %v\nafter  %v", seed, before, after)
		}
	}
}

// onlyForeign allows an unexpected rule for strict pods' addresses.
func onlyForeign(before, after []string) bool {
	for _, o := range after {
		if !slices.Contains(before, o) && !slices.Contains([]string{"lookup 77"}, o[max(0, len(o)-9):]) {
			return false
		}
	}
	return !slices.ContainsFunc(before, func(o string) bool { return !slices.Contains(after, o) })
}

// TestBaseline_LeavesAlone: pods that were never complete, that have ended, or whose link
// belongs to another sandbox are left alone, whatever they lack.
func TestBaseline_LeavesAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		whole := newLiving(r, 1+r.IntN(12))
		i := r.IntN(len(whole.pods))
		p := whole.pods[i]
		for name, change := range map[string]func(l *living, w *Baseline){
			"an ADD under way":   func(_ *living, w *Baseline) { *w = Baseline{} },
			"a DEL: freed first": func(l *living, _ *Baseline) { l.pods = slices.Delete(l.pods, i, i+1) },
			"its link is gone": func(l *living, _ *Baseline) {
				l.view.Links = slices.DeleteFunc(l.view.Links, func(o netstate.Link) bool { return o.Index == int32(100+i) })
			},
			"another sandbox": func(l *living, _ *Baseline) { l.link(int32(100 + i)).Index = 5000 },
			"another sandbox after a restart": func(l *living, w *Baseline) {
				l.pods[i].Settled = true
				l.link(int32(100 + i)).Index = 5000
				w.Diff(l.view, l.pods, unknownMAC)
			},
			"the address is again": func(l *living, _ *Baseline) { l.pods[i].Owner = "another" },
		} {
			l, w := whole.clone(), Baseline{}
			w.Diff(l.view, l.pods, unknownMAC)
			drop := func(a netip.Prefix) bool { return a.IsValid() && a.IsSingleIP() && a.Addr() == p.Address }
			l.view.Rules = slices.DeleteFunc(l.view.Rules, func(o netstate.Rule) bool { return drop(o.To) || drop(o.From) || p.Branch != nil && o.Table == p.Table })
			l.view.Routes = slices.DeleteFunc(l.view.Routes, func(o netstate.Route) bool { return drop(o.Dst) })
			change(l, &w)
			for _, got := range w.Diff(l.view, l.pods, unknownMAC) {
				if got.Pod == p.Address {
					t.Errorf("seed %d, %s: %v", seed, name, got)
				}
			}
		}
	}
}

func TestBaseline_SettledOfOneName(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 3))
	l := newLiving(r, 1)
	l.pods[0].Settled = true
	older := l.pods[0]
	older.Address, older.Owner = netip.MustParseAddr("10.9.9.9"), "older"
	l.pods = append(l.pods, older)
	var w Baseline
	if got := w.Diff(l.view, l.pods, unknownMAC); len(got) > 0 || w.Has(older.Address) {
		t.Errorf("the address of an older pod of the name is brought back: %v", got)
	}
}

// TestBaseline_FirstMAC: a MAC address that changed before the first look is known from the
// link's notice.
func TestBaseline_FirstMAC(t *testing.T) {
	t.Parallel()
	l := newLiving(rand.New(rand.NewPCG(1, 4)), 1)
	made := netstate.MAC{2, 7, 7}
	var w Baseline
	l.apply(w.Diff(l.view, l.pods, func(int32) (netstate.MAC, bool) { return made, true }))
	if got := l.link(100).MAC; got != made {
		t.Errorf("link has %v, was made with %v", got, made)
	}
}

func TestRepair_String(t *testing.T) {
	t.Parallel()
	l := newLiving(rand.New(rand.NewPCG(5, 4)), 8)
	var w Baseline
	w.Diff(l.view, l.pods, unknownMAC)
	l.view.Rules, l.view.Routes = nil, nil
	for _, r := range w.Diff(l.view, l.pods, unknownMAC) {
		if r.String() == "" || r.Object == "" || !r.Pod.IsValid() || r.Owner == "" {
			t.Errorf("%+v says nothing", r)
		}
	}
}

func TestRepairBackoff(t *testing.T) {
	t.Parallel()
	var c RepairBackoff
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []time.Duration{0, 0, 0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		wait := c.Wait(now, "rule")
		if wait != want {
			t.Errorf("loss %d: waits %v, want %v", i+1, wait, want)
		}
		if wait > 0 && c.Wait(now.Add(wait-time.Nanosecond), "rule") == 0 {
			t.Errorf("loss %d: waits less than %v", i+1, wait)
		}
		now = now.Add(wait)
		if n := c.Done(now, "rule"); n != i+1 || Contested(n) != (i >= freeRepairs) {
			t.Errorf("loss %d: counted %d, contested %t", i+1, n, Contested(n))
		}
	}
	if c.Wait(now, "another") != 0 {
		t.Error("another thing waits")
	}
	now = now.Add(streakEnds)
	if n := c.Done(now, "rule"); n != 1 {
		t.Errorf("after a while the next loss is number %d", n)
	}
	for i := range 3 * maxStreaks {
		c.Done(now, fmt.Sprint(i))
	}
	if len(c.things) > maxStreaks {
		t.Errorf("remembers %d things", len(c.things))
	}
}

func BenchmarkWorkloadDiff(b *testing.B) {
	l := newLiving(rand.New(rand.NewPCG(1, 5)), 500)
	var w Baseline
	for b.Loop() {
		w.Diff(l.view, l.pods, unknownMAC)
	}
}
