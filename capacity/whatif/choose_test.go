package whatif

import (
	"reflect"
	"testing"
	"time"

	"cnictl/capacity/limits"
)

// front makes points of addresses held, requests in one hour and ADDs that waited.
func front(of ...[3]float64) (out []Point) {
	for i, x := range of {
		out = append(out, Point{Index: i, Result: Result{For: time.Hour, Held: Spread{Avg: x[0]}, Calls: Calls{Assigns: int(x[1])}, Waited: int(x[2])}})
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	one := CallBound{Share: 12, Most: 12}
	for name, c := range map[string]struct {
		front []Point
		bound CallBound
		goal  Goal
		want  int
	}{
		"nothing":                             {nil, one, Balanced, -1},
		"one point":                           {front([3]float64{30, 0}), one, Balanced, 0},
		"one point above the bound":           {front([3]float64{30, 90}), one, Balanced, 0},
		"all above the bound: fewest calls":   {front([3]float64{30, 90}, [3]float64{40, 20}, [3]float64{50, 13}), one, Balanced, 2},
		"the bound is inclusive":              {front([3]float64{30, 90}, [3]float64{40, 12}), one, Balanced, 1},
		"one address for 7 requests":          {front([3]float64{25, 43}, [3]float64{26, 8}, [3]float64{27, 1}, [3]float64{28, 0}), one, Balanced, 2},
		"two points, one address apart":       {front([3]float64{26, 6}, [3]float64{27, 0}), one, Balanced, 1},
		"two points, a prefix apart":          {front([3]float64{33, 3}, [3]float64{49, 0}), one, Balanced, 0},
		"few calls are cheap":                 {front([3]float64{100, 1}, [3]float64{110, 0}), one, Balanced, 0},
		"today's calls do not make more fair": {front([3]float64{25, 43}, [3]float64{26, 8}, [3]float64{27, 1}, [3]float64{28, 0}), CallBound{12, 113}, Balanced, 2},
		"a busy node stays below today's":     {front([3]float64{30, 300}, [3]float64{35, 90}, [3]float64{50, 20}), CallBound{12, 100}, Balanced, 2},
		"a fleet has its nodes' share":        {front([3]float64{2500, 4300}, [3]float64{2600, 800}, [3]float64{2700, 100}, [3]float64{2800, 0}), CallBound{1200, 1200}, Balanced, 2},
		"nothing held":                        {front([3]float64{0, 0}), one, Balanced, 0},
		"equally far below the chord":         {front([3]float64{100, 6}, [3]float64{150, 0}, [3]float64{200, -1}), one, Balanced, 1},
		"1 % more addresses, fewer calls":     {front([3]float64{2700, 90}, [3]float64{2727, 80}, [3]float64{2728, 70}, [3]float64{2970, 0}), CallBound{1200, 1200}, Balanced, 1},
		"fewest addresses":                    {front([3]float64{25, 43}, [3]float64{26, 8}), one, FewestAddresses, 0},
		"fewest addresses, nearly equal":      {front([3]float64{28.956, 29}, [3]float64{28.97, 20}, [3]float64{29, 0}, [3]float64{30, -1}), one, FewestAddresses, 2},
		"burst, nearly equal":                 {front([3]float64{28.956, 29}, [3]float64{29, 0}), one, ServedBurst, 1},
		"burst, but more ADDs would wait":     {front([3]float64{28.956, 29, 4}, [3]float64{29, 0, 5}), one, ServedBurst, 0},
		"burst, 1 % more ADDs wait":           {front([3]float64{28.956, 29, 400}, [3]float64{29, 0, 404}), one, ServedBurst, 1},
		"fewest calls":                        {front([3]float64{25, 43}, [3]float64{26, 8}), one, FewestCalls, 1},
	} {
		if got := Choose(c.front, c.goal, c.bound); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := BoundCalls(Result{For: 30 * time.Minute, Calls: Calls{Assigns: 20}}, 3); got != (CallBound{36, 40}) {
		t.Errorf("%+v", got)
	}
	if got := BoundCalls(Result{}, 3); got != (CallBound{36, 36}) {
		t.Errorf("%+v", got)
	}
}

// TestChoose_Properties: on any front the choice is one of its points, within the bound if any
// is, and the same again; no point holds as few addresses, makes no more ADDs wait and sends
// fewer requests.
func TestChoose_Properties(t *testing.T) {
	t.Parallel()
	rnd := Stream(1, 11)
	for n := range 2000 {
		var points []Point
		for i := range 1 + rnd.Below(30) {
			r := Result{For: time.Duration(1+rnd.Below(600)) * time.Minute, Held: Spread{Avg: float64(rnd.Below(2000)) / float64(1+rnd.Below(50))}, Calls: Calls{Assigns: rnd.Below(400)}, Waited: rnd.Below(5)}
			if len(points) > 0 {
				r.For = points[0].Result.For
			}
			points = insert(points, Point{Index: i, Result: r})
		}
		bound := BoundCalls(Result{For: time.Hour, Calls: Calls{Assigns: rnd.Below(100)}}, 1+rnd.Below(5))
		for _, goal := range Goals() {
			i := Choose(points, goal, bound)
			if i < 0 || i >= len(points) || Choose(points, goal, bound) != i {
				t.Fatalf("case %d, %s: point %d of %d", n, goal, i, len(points))
			}
			for _, p := range points {
				if goal == Balanced && points[i].perHour() > bound.Most && p.perHour() < points[i].perHour() {
					t.Errorf("case %d: %.1f requests per hour with a bound of %.1f, another has %.1f", n, points[i].perHour(), bound.Most, p.perHour())
				}
				if held, calls := points[i].cost(); p.Result.Held.Avg <= held && p.Result.Waited <= points[i].Result.Waited && p.Result.Calls.Requests() < calls {
					t.Errorf("case %d, %s: %+v is better than %+v", n, goal, p, points[i])
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
	for name, c := range map[string]struct {
		nodes []Node
		load  Load
		want  [][2]int // the first and the last minimum of each WARM_IP_TARGET from 1
	}{
		"replaced":          {[]Node{{m5large(), 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"replaced, custom":  {[]Node{{custom, 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"replaced, prefix":  {[]Node{{prefixes, 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"replaced, full":    {[]Node{{full, 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {13, 20}}},
		"the smallest node": {[]Node{{m5large(), 20}, {m5large(), 0}}, replaced, [][2]int{{2, 20}, {3, 20}, {4, 20}}},
		"still":             {[]Node{{m5large(), 10}}, still, [][2]int{{11, 20}, {12, 20}, {13, 20}}},
		"a burst":           {[]Node{{m5large(), 10}}, Load{For: time.Hour, Free: -1, Steps: Burst(0, 5, time.Minute)}, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
		"today by address":  {[]Node{{m5large(2, 0), 10}}, replaced, [][2]int{{12, 20}, {13, 20}, {14, 20}}},
	} {
		got := make([][2]int, 3)
		for _, s := range Guarded(c.nodes, c.load, Candidates(c.nodes, Bounds{WarmIP: 3, MinimumIP: 20, WarmENI: 2, WarmPrefix: 2})) {
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
	if c := Guarded(nodes, still, Candidates(nodes, DefaultBounds(nodes))); c[0].targets() != nodes[0].Settings.targets() {
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
		today := NewRun(nodes, load, Ours)
		for today.Next() {
		}
		all := Guarded(nodes, load, Candidates(nodes, Bounds{WarmIP: 2, MinimumIP: 14, WarmENI: 1, WarmPrefix: 1}))
		bound := BoundCalls(today.Result(), len(nodes))
		s := found(t, nodes, load, all, today.Result().Failed)
		i := Choose(s.Front(), Balanced, bound)
		if i < 0 {
			continue
		}
		chosen := s.Front()[i]
		if w, m := chosen.Settings.WarmIP, chosen.Settings.MinimumIP; w > 0 && m == 0 {
			t.Errorf("seed %d: WARM_IP_TARGET=%d alone", seed, w)
		}
		for _, x := range all {
			r := play(t, With(nodes, x), load, Ours)
			if r.Failed > today.Result().Failed {
				continue
			}
			other := Point{Settings: x, Result: r}
			h, c := other.cost()
			if held, calls := chosen.cost(); h <= held && c <= calls && (h < held-rounding || c < calls) {
				t.Errorf("seed %d: %+v is beaten by %+v", seed, chosen, other)
			}
			if chosen.perHour() > bound.Most && other.perHour() < chosen.perHour() {
				t.Errorf("seed %d: %.1f requests per hour, bound %.1f, another has %.1f", seed, chosen.perHour(), bound.Most, other.perHour())
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
				s.MaxPods = min(110, s.Capacity()+hostPods)
				nodes := []Node{{s, min(20, s.Room()/2)}}
				load := Load{For: time.Hour, Seed: 1, Free: -1, Steps: Replacements(1, time.Hour, 1)}
				today := NewRun(nodes, load, Ours)
				for today.Next() {
				}
				points := found(t, nodes, load, Guarded(nodes, load, Candidates(nodes, Bounds{WarmIP: 2, MinimumIP: 26, WarmENI: 1, WarmPrefix: 1})), today.Result().Failed).Front()
				k := Choose(points, Balanced, BoundCalls(today.Result(), 1))
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
