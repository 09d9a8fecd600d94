package whatif

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"cnictl/capacity/limits"
)

// at is where a point of a front is: addresses held, requests in one hour, ADDs that waited.
type at [3]float64

// front makes points.
func front(of ...at) (out []Point) {
	for i, x := range of {
		r := Result{For: time.Hour, Held: Spread{Avg: x[0]}, Calls: Calls{Assigns: int(x[1])}, Waited: int(x[2])}
		out = append(out, Point{Index: i, Result: r, requests: []int{int(x[1])}})
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	one := CallBound{12}
	hundred := slices.Repeat(one, 100)
	// fleet spreads the requests of points over 100 nodes, up to a number for each.
	fleet := func(most int, front []Point) []Point {
		for i := range front {
			left := front[i].requests[0]
			front[i].requests = nil
			for range hundred {
				front[i].requests = append(front[i].requests, min(left, most))
				left -= min(left, most)
			}
		}
		return front
	}
	for name, c := range map[string]struct {
		front []Point
		bound CallBound
		goal  Goal
		want  int
	}{
		"nothing":                             {nil, one, Balanced, -1},
		"one point":                           {front(at{30, 0}), one, Balanced, 0},
		"one point above the bound":           {front(at{30, 90}), one, Balanced, 0},
		"all above the bound: fewest calls":   {front(at{30, 90}, at{40, 20}, at{50, 13}), one, Balanced, 2},
		"the bound is inclusive":              {front(at{30, 90}, at{40, 12}), one, Balanced, 1},
		"one address for 7 requests":          {front(at{25, 43}, at{26, 8}, at{27, 1}, at{28, 0}), one, Balanced, 2},
		"two points, one address apart":       {front(at{26, 6}, at{27, 0}), one, Balanced, 1},
		"two points, a prefix apart":          {front(at{33, 3}, at{49, 0}), one, Balanced, 0},
		"few calls are cheap":                 {front(at{100, 1}, at{110, 0}), one, Balanced, 0},
		"today's calls do not make more fair": {front(at{25, 43}, at{26, 8}, at{27, 1}, at{28, 0}), CallBound{113}, Balanced, 2},
		"a busy node stays below today's":     {front(at{30, 300}, at{35, 90}, at{50, 20}), CallBound{100}, Balanced, 2},
		"one address for 11 requests":         {front(at{3, 11}, at{4, 0}), one, Balanced, 1},
		"one address for 5 requests":          {front(at{3, 5}, at{4, 0}), one, Balanced, 0},
		"a node spends the share of all":      {fleet(119, front(at{295, 119}, at{364, 0})), hundred, Balanced, 1},
		"a fleet has its nodes' share": {
			fleet(12, front(at{2500, 1200}, at{2600, 800}, at{2700, 100}, at{2800, 0})), hundred, Balanced, 2,
		},
		"nothing held":                    {front(at{0, 0}), one, Balanced, 0},
		"equally far below the chord":     {front(at{100, 6}, at{150, 0}, at{200, -1}), one, Balanced, 1},
		"1 % more addresses, fewer calls": {fleet(1, front(at{2700, 90}, at{2727, 80}, at{2728, 70}, at{2970, 0})), hundred, Balanced, 1},
		"fewest addresses":                {front(at{25, 43}, at{26, 8}), one, FewestAddresses, 0},
		"fewest addresses, nearly equal":  {front(at{28.956, 29}, at{28.97, 20}, at{29, 0}, at{30, -1}), one, FewestAddresses, 2},
		"burst, nearly equal":             {front(at{28.956, 29}, at{29, 0}), one, ServedBurst, 1},
		"burst, but more ADDs would wait": {front(at{28.956, 29, 4}, at{29, 0, 5}), one, ServedBurst, 0},
		"burst, 1 % more ADDs wait":       {front(at{28.956, 29, 400}, at{29, 0, 404}), one, ServedBurst, 1},
		"fewest calls":                    {front(at{25, 43}, at{26, 8}), one, FewestCalls, 1},
	} {
		if got := Choose(c.front, c.goal, c.bound); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestBoundCalls: the bound is each node's own, 12 or what it sends today.
func TestBoundCalls(t *testing.T) {
	t.Parallel()
	load := Load{For: 2 * time.Hour, Free: -1, Steps: churning(0, 2*time.Hour)}
	today := played(t, []Node{{m5large(1, 0), 10}, {m5large(1, 0), 5}}, load, Ours)
	busy := today.Result().PerHour(today.Result().Calls.Requests())
	if got := BoundCalls(today); busy < 50 || !reflect.DeepEqual(got, CallBound{busy, 12}) || got.Sum() != busy+12 {
		t.Errorf("%v, want %v and 12", got, busy)
	}
}

// churning makes a pod come to a node and leave it again, in turns of 30 s.
func churning(node int, over time.Duration) (out []Step) {
	for at, pods := time.Duration(0), 1; at < over; at, pods = at+30*time.Second, -pods {
		out = append(out, Step{At: at, Node: node, Pods: pods})
	}
	return out
}

// TestChoose_Properties: on any front the choice is one of its points, within the bound if any
// is, and the same again. No point with at most 1 % more addresses, and at most 1 % more ADDs that
// wait, sends fewer requests.
func TestChoose_Properties(t *testing.T) {
	t.Parallel()
	rnd := Stream(1, 11)
	for n := range 2000 {
		var points []Point
		for i := range 1 + rnd.Below(30) {
			r := Result{
				For: time.Duration(1+rnd.Below(600)) * time.Minute, Held: Spread{Avg: float64(rnd.Below(2000)) / float64(1+rnd.Below(50))},
				Calls: Calls{Assigns: rnd.Below(400)}, Waited: rnd.Below(5),
			}
			if len(points) > 0 {
				r.For = points[0].Result.For
			}
			busy := rnd.Below(r.Calls.Requests() + 1)
			points = insert(points, Point{Index: i, Result: r, requests: []int{busy, r.Calls.Requests() - busy}})
		}
		bound := CallBound{float64(callsPerNode + rnd.Below(100)), callsPerNode}
		within := func(p Point) bool { _, _, above := p.Above(bound); return !above }
		// As in Search.Front: those above the bound come first.
		if i := slices.IndexFunc(points, within); i >= 0 {
			points = slices.Concat(points[:i], slices.DeleteFunc(slices.Clone(points[i:]), func(p Point) bool { return !within(p) }))
		}
		for _, goal := range Goals() {
			i := Choose(points, goal, bound)
			if i < 0 || i >= len(points) || Choose(points, goal, bound) != i {
				t.Fatalf("case %d, %s: point %d of %d", n, goal, i, len(points))
			}
			for _, p := range points {
				if goal == Balanced && !within(points[i]) && (within(p) || p.perHour() < points[i].perHour()) {
					t.Errorf("case %d: %+v is above the bound of %v, another is not or has fewer requests: %+v", n, points[i], bound, p)
				}
				chosen, other := points[i].Result, p.Result
				equal := other.Held.Avg <= chosen.Held.Avg*1.01 && float64(other.Waited) <= float64(chosen.Waited)*1.01
				if equal && other.Calls.Requests() < chosen.Calls.Requests() {
					t.Errorf("case %d, %s: %+v is chosen, not %+v", n, goal, points[i], p)
				}
			}
		}
	}
}

// TestGuarded: of the targets by addresses only those stay whose minimum matters.
func TestGuarded(t *testing.T) {
	t.Parallel()
	prefixes, full := m5large(), m5large()
	prefixes.PrefixDelegation, prefixes.MaxPods = true, 110
	full.MaxPods = 12
	custom := m5large()
	custom.CustomNetworking = true
	still := Load{For: time.Hour, Free: -1}
	replaced := Load{For: time.Hour, Seed: 1, Free: -1, Steps: Replacements(1, time.Hour, 1)}
	busy := Load{For: time.Hour, Free: -1, Steps: churning(0, time.Hour)}
	burst := Load{For: time.Hour, Free: -1, Steps: Burst(0, 5, time.Minute)}
	growing := Load{For: time.Hour, Free: -1, Steps: append(Burst(0, 15, 5*time.Second), Step{At: 59 * time.Minute, Pods: -1})}
	for name, c := range map[string]struct {
		nodes []Node
		load  Load
		want  [][2]int // the first and the last minimum of each WARM_IP_TARGET from 1
	}{
		"replaced":         {[]Node{{m5large(), 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"replaced, custom": {[]Node{{custom, 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"replaced, prefix": {[]Node{{prefixes, 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"replaced, full":   {[]Node{{full, 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {13, 20}}},
		"uneven nodes":     {[]Node{{m5large(), 17}, {m5large(), 0}}, replaced, [][2]int{{19, 20}, {20, 20}, {0, 0}}},
		"one busy node":    {[]Node{{m5large(), 15}, {m5large(), 0}}, busy, [][2]int{{18, 20}, {19, 20}, {20, 20}}},
		"one small node":   {[]Node{{m5large(), 0}, {m5large(), 16}}, busy, [][2]int{{3, 20}, {4, 20}, {5, 20}}},
		"expected pods":    {[]Node{{m5large(), 0}}, growing, [][2]int{{17, 20}, {18, 20}, {19, 20}}},
		"still":            {[]Node{{m5large(), 10}}, still, [][2]int{{11, 20}, {12, 20}, {13, 20}}},
		"a burst":          {[]Node{{m5large(), 10}}, burst, [][2]int{{17, 20}, {18, 20}, {19, 20}}},
		"today by address": {[]Node{{m5large(2, 0), 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
	} {
		got := make([][2]int, 3)
		tried := Candidates(c.nodes, Bounds{WarmIP: 3, MinimumIP: 20, WarmENI: 2, WarmPrefix: 2})
		candidates, unguarded := Guarded(played(t, c.nodes, c.load, Ours), c.nodes, tried)
		if unguarded != (len(c.load.Steps) > 0) {
			t.Errorf("%s: left out because of churn: %v", name, unguarded)
		}
		for _, s := range candidates {
			if s.WarmIP == 0 {
				continue
			}
			m := &got[s.WarmIP-1]
			if m[0] == 0 {
				m[0] = s.MinimumIP
			}
			m[1] = s.MinimumIP
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	nodes := []Node{{m5large(1, 6), 10}}
	c, _ := Guarded(played(t, nodes, still, Ours), nodes, Candidates(nodes, DefaultBounds(nodes)))
	if c[0].targets() != nodes[0].Settings.targets() {
		t.Errorf("without pods that come and go today's targets are left out: %+v", c[0])
	}
}

// TestBalanced_Properties: on all kinds of nodes and loads the choice is a candidate that none
// of the others beats, within the bound, with a MINIMUM_IP_TARGET beside WARM_IP_TARGET.
func TestBalanced_Properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		nodes, load := scene(Stream(seed, 12))
		if seed%4 == 0 {
			load.Steps = nil
		}
		today := played(t, nodes, load, Ours)
		all, _ := Guarded(today, nodes, Candidates(nodes, Bounds{WarmIP: 2, MinimumIP: 14, WarmENI: 1, WarmPrefix: 1}))
		bound := BoundCalls(today)
		s := found(t, nodes, load, all, today.Result().Failed, bound)
		i := Choose(s.Front(), Balanced, bound)
		if i < 0 {
			continue
		}
		chosen := s.Front()[i]
		if w, m := chosen.Settings.WarmIP, chosen.Settings.MinimumIP; w > 0 && m == 0 {
			t.Errorf("seed %d: WARM_IP_TARGET=%d alone", seed, w)
		}
		for _, x := range all {
			other := played(t, With(nodes, x), load, Ours).point(0, x)
			if other.Result.Failed > today.Result().Failed {
				continue
			}
			_, _, above := chosen.Above(bound)
			_, _, otherAbove := other.Above(bound)
			h, c := other.cost()
			if held, calls := chosen.cost(); above == otherAbove && h <= held && c <= calls && (h < held-rounding || c < calls) {
				t.Errorf("seed %d: %+v is beaten by %+v", seed, chosen, other)
			}
			if above && !otherAbove {
				t.Errorf("seed %d: %v per node with a bound of %v, another is within: %+v", seed, chosen.requests, bound, other)
			}
		}
	}
}

// TestBalanced_Uneven: one node with churn among quiet ones neither gets a pool that follows its
// pods nor more requests than it sends today, however many other nodes there are.
func TestBalanced_Uneven(t *testing.T) {
	t.Parallel()
	for _, quiet := range []int{1, 15} {
		for _, pods := range []int{0, 16} { // of the busy node; the others have 8
			nodes := append(slices.Repeat([]Node{{m5large(), 8}}, quiet), Node{m5large(), pods})
			load := Load{For: time.Hour, Free: -1, Steps: churning(quiet, time.Hour)}
			today := played(t, nodes, load, Ours)
			bound := BoundCalls(today)
			candidates, _ := Guarded(today, nodes, Candidates(nodes, Bounds{WarmIP: 3, MinimumIP: 22, WarmENI: 2}))
			front := found(t, nodes, load, candidates, today.Result().Failed, bound).Front()
			chosen := front[Choose(front, Balanced, bound)]
			if w, m := chosen.Settings.WarmIP, chosen.Settings.MinimumIP; w > 0 && m <= pods+w || chosen.requests[quiet] > 12 {
				t.Errorf("%d quiet nodes, %d pods on the busy one: %+v", quiet, pods, chosen)
			}
		}
	}
}

// TestBalanced_Types: on many types a churning node gets targets that upstream's advice allows.
func TestBalanced_Types(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"t3.small", "m5.large", "m5.metal", "m4.xlarge"} {
		for _, custom := range []bool{false, true} {
			for _, prefix := range []bool{false, true} {
				i, _ := limits.Lookup(typ)
				s := Settings{Instance: i, WarmENI: 1, WarmPrefix: 1, PrefixDelegation: prefix, CustomNetworking: custom, WarmIP: 1}
				s.MaxPods = min(110, s.Capacity()+limits.HostPods)
				nodes := []Node{{s, min(20, s.Room()/2)}}
				load := Load{For: time.Hour, Seed: 1, Free: -1, Steps: Replacements(1, time.Hour, 1)}
				today := played(t, nodes, load, Ours)
				candidates, _ := Guarded(today, nodes, Candidates(nodes, Bounds{WarmIP: 2, MinimumIP: 26, WarmENI: 1, WarmPrefix: 1}))
				points := found(t, nodes, load, candidates, today.Result().Failed, BoundCalls(today)).Front()
				k := Choose(points, Balanced, BoundCalls(today))
				if k < 0 {
					t.Errorf("%s, custom %v, prefix %v: nothing", typ, custom, prefix)
					continue
				}
				if p := points[k]; p.perHour() > callsPerNode || p.Settings.WarmIP > 0 && p.Settings.MinimumIP <= nodes[0].Pods {
					t.Errorf("%s, custom %v, prefix %v, %d pods: %+v", typ, custom, prefix, nodes[0].Pods, p)
				}
			}
		}
	}
}
