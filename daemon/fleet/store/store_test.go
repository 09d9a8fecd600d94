package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/human"
)

var t0 = fleettest.Start()

// Nodes of the tests.
var sample, failed, random, big = fleettest.Sample, fleettest.Failed, fleettest.Random, fleettest.Busy

func after(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

func TestStore_Stale(t *testing.T) {
	t.Parallel()
	s := New()
	s.PutAt(sample("a", t0, 5, 1, 12), t0)
	s.PutAt(failed("a", introspect.ReasonTimeout), after(120))
	n := s.View().Node("a")
	if n.State != document.StateStale || !n.Known || n.Assigned != 5 || n.Held != 18 || n.Word != "stale 2m: timeout" || n.Severity != document.SeverityError || !n.SampledAt.Equal(t0) || n.Rates != nil {
		t.Errorf("%s %q %+v", n.State, n.Word, n)
	}
	if len(n.History) != 2 || !n.History[1].Gap() || n.History[0].Assigned != 5 {
		t.Errorf("%+v", n.History)
	}
	tot := s.View().Totals
	if tot.Partial != 1 || tot.Live != 0 || tot.Held != 18 || !tot.Complete {
		t.Errorf("%+v", tot)
	}
	// It answers again: another point at once, and rates of the same daemon.
	s.PutAt(sample("a", after(123), 6, 0, 12), after(123))
	n = s.View().Node("a")
	if n.State != document.StateLive || n.Error != nil || n.Word != "ok" || len(n.History) != 3 || n.Rates == nil || n.Rates.Over != 123*time.Second {
		t.Errorf("%+v", n)
	}
	// A node that never answered has nothing to show.
	s.PutAt(failed("b", introspect.ReasonRefused), after(124))
	v := s.View()
	if b := v.Node("b"); b.Known || b.State != document.StateUnreachable || b.Severity != document.SeverityError || len(b.History) != 0 {
		t.Errorf("%+v", b)
	}
	if v.Totals.Down != 1 || v.Totals.Complete || v.Totals.Held != 18 {
		t.Errorf("%+v", v.Totals)
	}
}

func TestStore_ObjectAlone(t *testing.T) {
	t.Parallel()
	s := New()
	object := func(instance string, maxPods int) document.NodeIPAM {
		return document.NodeIPAM{
			Metadata: document.ObjectMeta{Name: "a"}, State: document.StateAPIOnly,
			Object: &document.NodeObject{InstanceID: instance, InstanceType: "m5.large", MaxPods: &maxPods},
		}
	}
	s.PutAt(object("i-1", 29), t0)
	if v := s.View(); v.Totals.Unasked != 1 || v.Totals.Complete || *v.Totals.Pods != 29 || v.Totals.Limit != nil {
		t.Errorf("%+v", v.Totals)
	}
	s.PutAt(sample("a", after(1), 5, 0, 13), after(1))
	if n := s.View().Node("a"); n.Object == nil || n.State != document.StateLive {
		t.Errorf("%+v", n)
	}
	// News from Kubernetes: the node's report stays, and no point is added.
	s.PutAt(object("i-1", 30), after(60))
	if n := s.View().Node("a"); n.State != document.StateLive || n.Assigned != 5 || *n.Object.MaxPods != 30 || len(n.History) != 1 {
		t.Errorf("%+v", n)
	}
	// Another machine of the same name: nothing of the old one remains.
	s.PutAt(object("i-2", 30), after(70))
	if n := s.View().Node("a"); n.State != document.StateAPIOnly || n.Known || len(n.History) != 0 {
		t.Errorf("%+v", n)
	}
	// Without its daemon, nothing about the node is known any more.
	s.PutAt(sample("a", after(80), 5, 0, 13), after(80))
	s.PutAt(document.NodeIPAM{Metadata: document.ObjectMeta{Name: "a"}, State: document.StateNoDaemon}, after(90))
	if v := s.View(); v.Nodes[0].Known || v.Totals.NoDaemon != 1 || v.Totals.Held != 0 || !v.Totals.Complete {
		t.Errorf("%+v", v.Totals)
	}
}

func TestStore_Rates(t *testing.T) {
	t.Parallel()
	s := New()
	put := func(at int, adds, ec2 int, started time.Time) *Rates {
		n := sample("a", after(at), 1, 0, 1)
		n.Summary.StartedAt, n.Summary.ADDs.Total = &started, adds
		n.Summary.EC2Calls = []introspect.EC2Calls{{Action: "x", Calls: ec2, Errors: ec2 / 2}}
		s.Put(n)
		return s.View().Nodes[0].Rates
	}
	run := t0.Add(-time.Hour)
	if r := put(0, 10, 4, run); r != nil {
		t.Errorf("of one sample: %+v", r)
	}
	want := &Rates{Over: 30 * time.Second, ADDs: new(12.0), Failed: new(0.0), DELs: new(0.0), EC2: new(4.0), EC2Error: new(2.0)}
	if r := put(30, 16, 6, run); !cmp.Equal(r, want) {
		t.Errorf("%+v", r)
	}
	if r := put(30, 16, 6, run); !cmp.Equal(r, want) {
		t.Errorf("of the same second: %+v", r)
	}
	if r := put(60, 15, 6, run); r != nil {
		t.Errorf("of a counter that went back: %+v", r)
	}
	if r := put(90, 16, 6, run); r == nil || *r.ADDs != 2 {
		t.Errorf("after it: %+v", r)
	}
	if r := put(120, 20, 8, after(100)); r != nil {
		t.Errorf("of another run: %+v", r)
	}
	if r := put(110, 30, 8, after(100)); r != nil {
		t.Errorf("of a clock that went back: %+v", r)
	}
}

// ADDs that come in threes, every 15 s, are 12 a minute in each sample.
func TestStore_RatesAreSteady(t *testing.T) {
	t.Parallel()
	s, started := New(), t0.Add(-time.Hour)
	for at := 0; at <= 300; at += 5 {
		n := sample("a", after(at), 1, 0, 1)
		n.Summary.StartedAt, n.Summary.ADDs.Total = &started, at/15*3
		s.Put(n)
		r := s.View().Nodes[0].Rates
		if at >= 60 && (r == nil || *r.ADDs < 10 || *r.ADDs > 14 || r.Over < rateWindow || r.Over >= rateWindow+countsApart) {
			t.Errorf("after %d s: %+v", at, r)
		}
	}
	if kept := len(s.nodes[0].counters); kept > 8 {
		t.Errorf("%d counts are kept", kept)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	var h History
	var seen []History
	for i := range 3000 {
		h = h.add(Point{Unix: second(after(i * 2)), Assigned: int32(i)})
		seen = append(seen, h)
	}
	if len(h) != HistoryLen || h[len(h)-1].At().Sub(h[0].At()) != 89*Spacing || cap(h) > HistoryLen+grow {
		t.Errorf("%d points of %d over %v", len(h), cap(h), h[len(h)-1].At().Sub(h[0].At()))
	}
	// Older histories never change.
	for i, old := range seen {
		for j, p := range old {
			if p.At().Sub(t0) != time.Duration(p.Assigned)*2*time.Second || j > 0 && !p.At().After(old[j-1].At()) {
				t.Fatalf("history %d, point %d: %+v", i, j, p)
			}
		}
	}
	if back := h.add(Point{Unix: second(t0)}); len(back) != len(h) {
		t.Error("a point of the past was added")
	}
}

// assigned describes points by their assigned counts, - for a gap.
func assigned(points []Point) string {
	words := make([]string, len(points))
	for i, p := range points {
		if words[i] = "-"; !p.Gap() {
			words[i] = strconv.Itoa(int(p.Assigned))
		}
	}
	return strings.Join(words, " ")
}

func TestHistory_Series(t *testing.T) {
	t.Parallel()
	at := func(seconds int, assigned int32) Point {
		return Point{Unix: second(after(seconds)), Assigned: assigned}
	}
	h := History{at(0, 1), at(30, 2), at(60, -1), at(90, 4)}
	for name, x := range map[string]struct {
		h        History
		from, to int // in seconds
		cells    int
		want     string
	}{
		"a point stands until the next, a gap does not": {h, -30, 110, 7, "- 1 2 2 - 4 4"},
		"a cell has its end and not its beginning":      {h, -30, 90, 4, "1 2 - 4"},
		"two points in a cell: the last counts":         {h, -1, 59, 1, "2"},
		"a gap in a cell wins over what was before it":  {h, 30, 60, 1, "-"},
		"the last stands for a minute":                  {h, 90, 210, 12, "4 4 4 4 4 4 - - - - - -"},
		"the last stands for three cells":               {h, 90, 690, 6, "4 4 4 - - -"},
		"long after":                                    {h, 600, 630, 3, "- - -"},
		"long before":                                   {h, -600, -500, 2, "- -"},
		"read every four minutes":                       {History{at(0, 1), at(240, 2), at(480, 3)}, 0, 480, 8, "1 1 1 2 2 2 2 3"},
		"not read for ten minutes":                      {History{at(0, 1), at(600, 2)}, 0, 600, 10, "1 1 1 - - - - - - 2"},
		"before a gap it stands for no more than alone": {History{at(0, 1), at(240, -1)}, 0, 240, 12, "1 1 1 - - - - - - - - -"},
		"more cells than seconds":                       {h, 58, 61, 6, "2 2 2 - - -"},
		"no history":                                    {nil, 0, 60, 3, "- - -"},
		"no cells":                                      {h, 0, 60, 0, ""},
		"no time":                                       {h, 60, 60, 3, ""},
		"time goes back":                                {h, 60, 0, 3, ""},
	} {
		if got := assigned(x.h.Series(after(x.from), after(x.to), x.cells)); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// TestHistory_Targets: a point has its own time's targets, so that charts of the past do not
// show the current ones.
func TestHistory_Targets(t *testing.T) {
	t.Parallel()
	s := New()
	for i, warm := range []*int{nil, new(5), new(0), new(1 << 40)} {
		n := sample("a", after(i*10), 5, 0, 3)
		n.Summary.Targets.WarmIP, n.Summary.Targets.MinimumIP = warm, new(i)
		s.Put(n)
	}
	var got []int16
	for _, p := range s.Node("a").History {
		got = append(got, p.WarmIP, p.MinimumIP)
	}
	if want := []int16{-1, 0, 5, 1, 0, 2, math.MaxInt16, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestStore_Subnets(t *testing.T) {
	t.Parallel()
	s := New()
	put := func(name string, free int, asOf int, enis []introspect.NodeENI) {
		n := sample(name, t0, 5, 0, 13)
		n.ENIs = enis
		n.Summary.Subnets = []introspect.Subnet{{ID: "subnet-1", CIDR: "10.0.0.0/24", Available: &free, AsOf: new(after(asOf))}, {ID: "subnet-2"}}
		for _, e := range enis {
			n.Summary.ENIs = append(n.Summary.ENIs, introspect.ENISummary{ID: e.ID, Total: e.Total, Free: e.Free})
		}
		n.Object = &document.NodeObject{Zone: "eu-1a", InternalIP: "10.0.0.200"}
		s.Put(n)
	}
	cidr := func(c string, total, assigned int) introspect.NodeCIDR {
		return introspect.NodeCIDR{CIDR: netip.MustParsePrefix(c), Total: total, Assigned: assigned, Free: total - assigned}
	}
	put("a", 100, 5, []introspect.NodeENI{
		{ID: "eni-1", SubnetID: "subnet-1", Total: 18, Free: 13, CIDRs: []introspect.NodeCIDR{cidr("10.0.0.16/28", 16, 5), cidr("10.0.0.33/32", 1, 0), cidr("10.0.0.34/32", 1, 0)}},
		{ID: "eni-2", SubnetID: "subnet-2", Total: 2, Free: 0},
	})
	put("b", 90, 9, []introspect.NodeENI{{ID: "eni-3", SubnetID: "subnet-1", Total: 1, CIDRs: []introspect.NodeCIDR{cidr("10.0.0.35/32", 1, 1)}}})
	one := s.View().Subnets[0]
	if *one.Available != 90 || one.Range.String() != "10.0.0.0/24" || one.Zone != "eu-1a" || one.Nodes != 2 || one.ENIs != 2 || one.Held != 21 || one.Wasted != 13 {
		t.Errorf("%+v", one)
	}
	blocks := fmt.Sprint(one.Blocks)
	if want := "[{10.0.0.16/28 1 16 5 a} {10.0.0.32/28 2 3 1 a} {10.0.0.192/28 3 2 0 a}]"; blocks != want {
		t.Errorf("%s\nwant %s", blocks, want)
	}
	two := s.View().Subnets[1]
	if two.Available != nil || two.Nodes != 2 || two.ENIs != 1 || two.Held != 3 {
		t.Errorf("%+v", two)
	}
	// A sample without ENIs: they stay where they were, and those that are gone are dropped.
	n := sample("a", after(10), 5, 0, 13)
	n.Summary.Subnets = []introspect.Subnet{{ID: "subnet-1", CIDR: "10.0.0.0/24"}, {ID: "subnet-2"}}
	n.Summary.ENIs = []introspect.ENISummary{{ID: "eni-1", Total: 20, Free: 15}}
	s.Put(n)
	v := s.View()
	if u := v.Subnets[0]; u.Held != 23 || u.Wasted != 15 || len(u.Blocks) != 3 || *u.Available != 90 {
		t.Errorf("%+v", u)
	}
	if u := v.Subnets[1]; u.ENIs != 0 || u.Held != 0 {
		t.Errorf("%+v", u)
	}
	if len(two.Blocks) != 0 || fmt.Sprint(one.Blocks) != blocks {
		t.Error("an older view has changed")
	}
	// The node with the newest reading goes: the next newest counts.
	put("a", 100, 5, nil)
	s.Remove("b")
	if u := s.View().Subnets[0]; *u.Available != 100 || u.Nodes != 1 {
		t.Errorf("%+v", u)
	}
	s.Remove("a")
	if v := s.View(); len(v.Subnets) != 0 || len(v.Nodes) != 0 || !reflect.DeepEqual(v.Totals, New().sums.totals()) {
		t.Errorf("%+v", v)
	}
}

func TestStore_Views(t *testing.T) {
	t.Parallel()
	s := New()
	if v := s.View(); v == nil || v != s.View() || v.Node("a") != nil {
		t.Error("an empty store has no view of its own")
	}
	s.Put(sample("b", t0, 1, 0, 0))
	select {
	case <-s.Changed():
	default:
		t.Error("nothing fires")
	}
	first := s.View()
	if s.View() != first {
		t.Error("another view without a change")
	}
	s.Put(sample("a", after(10), 1, 0, 0))
	s.Put(sample("b", after(10), 2, 0, 0))
	<-s.Changed()
	select {
	case <-s.Changed():
		t.Error("it fires once for each change")
	default:
	}
	second := s.View()
	if len(first.Nodes) != 1 || first.Nodes[0].Assigned != 1 || len(second.Nodes) != 2 || second.Nodes[1].Assigned != 2 || second.Generation <= first.Generation || !second.At.Equal(after(10)) {
		t.Errorf("%+v %+v", first, second)
	}
	if n := second.Node("b"); n.Changed != after(10) || s.Node("b") != n || s.Node("c") != nil {
		t.Errorf("%+v", n)
	}
	s.Put(sample("b", after(20), 2, 0, 0))
	if n := s.View().Node("b"); n.Changed != after(10) || !n.SampledAt.Equal(after(20)) {
		t.Errorf("changed %v", n.Changed)
	}
	other := New()
	other.Put(sample("c", after(30), 3, 0, 0))
	s.Take(other)
	if v := s.View(); len(v.Nodes) != 1 || v.Totals.Assigned != 3 || v.Generation <= second.Generation || !v.At.Equal(after(30)) {
		t.Errorf("%+v", v)
	}
}

// TestStore_Property: after any changes the sums equal a recount of the remaining nodes.
func TestStore_Property(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	s := New()
	for i := range 1500 {
		at := after(i * 5)
		name := fmt.Sprint("n", r.IntN(12))
		if r.IntN(10) == 0 {
			s.Remove(name)
		} else {
			s.PutAt(random(r, name, at), at)
		}
		if i%7 != 0 {
			continue
		}
		v := s.View()
		again := New()
		again.mu.Lock()
		for _, n := range v.Nodes {
			again.nodes = append(again.nodes, n)
			again.sums.add(n, 1)
			again.subnets.replace(n.Metadata.Name, nil, n.uses)
		}
		again.touch()
		again.mu.Unlock()
		want := again.View().WithReadings(s.readings) // what was read before
		if diff := cmp.Diff(want.Totals, v.Totals); diff != "" {
			t.Fatalf("step %d: recounted (-), kept (+):\n%s", i, diff)
		}
		held, assigned, free, waiting, pools := 0, 0, 0, 0, 0
		for _, n := range v.Nodes {
			if fleet.Excused(n.NodeIPAM) || n.Summary == nil {
				continue
			}
			one := NewNode(n.NodeIPAM)
			held, assigned, free = held+one.Held, assigned+one.Assigned, free+one.Free
			if w := n.Summary.WaitingADDs; w != nil {
				waiting += *w
			}
			if len(n.Summary.Cards) > 0 {
				pools++
			}
		}
		if got := v.Totals; got.Held != held || got.Assigned != assigned || got.Free != free || got.Activity.Waiting.N != waiting || got.Pools != pools {
			t.Fatalf("step %d: held %d, assigned %d, free %d, waiting %d in %d pools, got %+v", i, held, assigned, free, waiting, pools, got)
		}
		if diff := cmp.Diff(want.Subnets, v.Subnets, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Fatalf("step %d: recounted (-), kept (+):\n%s", i, diff)
		}
		if !slices.IsSortedFunc(v.Nodes, func(a, b *Node) int { return human.Natural(a.Metadata.Name, b.Metadata.Name) }) {
			t.Fatal("not by name")
		}
	}
}

// TestStore_Race: concurrent writers and readers, for -race.
func TestStore_Race(t *testing.T) {
	t.Parallel()
	s := New()
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			for i := range 500 {
				s.PutAt(random(r, fmt.Sprint("n", r.IntN(20)), after(i)), after(i))
			}
		})
		all.Go(func() {
			last := uint64(0)
			for range 500 {
				v := s.View()
				if v.Generation < last {
					t.Errorf("generation %d after %d", v.Generation, last)
				}
				last = v.Generation
				for _, n := range v.Nodes {
					_ = n.Trend(9)
				}
			}
		})
	}
	all.Wait()
}

// fill adds nodes with 20 pods each.
func fill(s *Store, nodes int, at time.Time) {
	for i := range nodes {
		s.PutAt(big(i, at), at)
	}
}

// TestStore_Memory bounds the memory of a node with a full history: 5,000 of them stay below
// 60 MB.
func TestStore_Memory(t *testing.T) {
	const nodes = 100
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := New()
	for i := range HistoryLen {
		fill(s, nodes, after(i*10))
	}
	v := s.View()
	took := heap() - before
	if each := took / nodes; each > 12<<10 || len(v.Nodes[0].History) != HistoryLen {
		t.Errorf("a node with %d points takes %d bytes", len(v.Nodes[0].History), each)
	}
	runtime.KeepAlive(s)
}

func BenchmarkPut(b *testing.B) {
	s := New()
	fill(s, 5000, t0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		b.StopTimer()
		n := big(i%5000, after(i))
		b.StartTimer()
		s.PutAt(n, after(i))
	}
}

func BenchmarkView(b *testing.B) {
	s := New()
	fill(s, 5000, t0)
	b.Run("changed", func(b *testing.B) {
		n := big(77, after(10))
		for b.Loop() {
			b.StopTimer()
			s.PutAt(n, after(10))
			b.StartTimer()
			s.View()
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			s.View()
		}
	})
}
