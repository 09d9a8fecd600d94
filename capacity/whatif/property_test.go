package whatif

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"cnictl/capacity/limits"
)

// scene is a random load on random nodes, some of which are identical.
func scene(rnd *Random) ([]Node, Load) {
	types := []string{"m5.large", "c6g.medium", "t3.small", "m4.large", "m5.xlarge"}
	var nodes []Node
	for range 1 + rnd.Below(3) {
		s := Settings{
			PrefixDelegation: rnd.Below(3) == 0, CustomNetworking: rnd.Below(4) == 0, Trunk: rnd.Below(4) == 0, MaxENI: rnd.Below(4),
			WarmENI: rnd.Below(3), WarmPrefix: rnd.Below(3), Cooldown: time.Duration(1+rnd.Below(60)) * time.Second,
		}
		if rnd.Below(2) == 0 {
			s.WarmIP, s.MinimumIP = rnd.Below(8), rnd.Below(30)
		}
		s.Instance, _ = limits.Lookup(types[rnd.Below(len(types))])
		if rnd.Below(3) > 0 {
			s.MaxPods = 4 + rnd.Below(40)
		}
		for range 1 + rnd.Below(2) {
			nodes = append(nodes, Node{s, rnd.Below(min(20, s.Room()) + 1)})
		}
	}
	length := time.Duration(1+rnd.Below(120)) * time.Minute
	load := Load{For: length, Seed: rnd.Next(), Free: rnd.Below(60) - 20}
	switch rate := float64(1 + rnd.Below(5)); rnd.Below(3) {
	case 0:
		load.Steps = Replacements(rate, length, load.Seed)
	case 1:
		load.Steps = Arrivals(rate, time.Duration(1+rnd.Below(30))*time.Minute, length, load.Seed)
	default:
		for i := range nodes {
			load.Steps = append(load.Steps, Burst(i, rnd.Below(30), time.Minute)...)
			load.Steps = append(load.Steps, Step{length / 2, i, -rnd.Below(12)})
		}
		SortSteps(load.Steps)
	}
	return nodes, load
}

// TestRun_Properties: whatever happens, no address has two pods, nodes hold at least the pods'
// addresses and the minimum of [Settings.least], no pod is lost, groups of nodes add up to the
// total, and the same seed gives the same result.
func TestRun_Properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		nodes, load := scene(Stream(seed, 9))
		for _, m := range []Model{Ours, Upstream} {
			r := NewRun(nodes, load, m)
			of := make([]int, len(nodes))
			for i := range of {
				of[i] = i % 2
			}
			r.Group(of)
			before := make([]int, len(nodes))
			came, gone := 0, 0
			for i, n := range r.nodes {
				before[i] = len(n.pods)
				came += len(n.pods)
			}
			for more := true; more; {
				at, there := r.next, 0
				for i, n := range r.nodes {
					if at < len(load.Steps) && (load.Steps[at].Node == i || load.Steps[at].Node == AnyNode) {
						there += len(n.pods)
					}
				}
				more = r.Next()
				if r.next > at {
					came += max(0, load.Steps[at].Pods)
					gone += min(max(0, -load.Steps[at].Pods), there)
				}
				running, waiting := 0, 0
				for i, n := range r.nodes {
					taken := map[netip.Addr]bool{}
					for a := range n.Book.Assignments() {
						if taken[a.Address] {
							t.Fatalf("seed %d, %s: %s has two pods", seed, m.Name, a.Address)
						}
						taken[a.Address] = true
					}
					if err := n.Book.Check(); err != nil {
						t.Fatalf("seed %d, %s: %v", seed, m.Name, err)
					}
					running, waiting = running+len(taken), waiting+n.Waiting
					if n.supply.held < len(taken)+n.enis {
						t.Fatalf("seed %d, %s: %d held with %d pods and %d interfaces", seed, m.Name, n.supply.held, len(taken), n.enis)
					}
					if least := nodes[i].Settings.least(before[i], n.fewest); m.Name == Ours.Name && n.supply.held < least {
						t.Fatalf("seed %d: %d held, at least %d with %+v", seed, n.supply.held, least, nodes[i].Settings)
					}
				}
				if got := running + waiting + gone + r.waits.unplaced; got != came {
					t.Fatalf("seed %d, %s: %d pods came, %d run, wait, are gone or were not placed", seed, m.Name, came, got)
				}
			}
			if r.Err() != nil {
				t.Fatalf("seed %d, %s: %v", seed, m.Name, r.Err())
			}
			all, parts := r.Result(), Result{}
			for _, g := range r.Groups() {
				parts.Held.Avg += g.Held.Avg
				parts.Calls = parts.Calls.plus(g.Calls, 1)
				parts.ADDs, parts.Waited, parts.Failed, parts.Unplaced = parts.ADDs+g.ADDs, parts.Waited+g.Waited, parts.Failed+g.Failed, parts.Unplaced+g.Unplaced
			}
			if d := parts.Held.Avg - all.Held.Avg; d*d > 1e-9 || parts.Calls != all.Calls || parts.ADDs != all.ADDs || parts.Waited != all.Waited || parts.Failed != all.Failed || parts.Unplaced != all.Unplaced {
				t.Errorf("seed %d, %s: all %+v\ntheir groups %+v", seed, m.Name, all, parts)
			}
			if again := play(t, nodes, load, m); again != r.Result() {
				t.Errorf("seed %d, %s: %+v\n%+v", seed, m.Name, again, r.Result())
			}
		}
	}
}

// TestSearch_Properties: no skipped candidate is better than the search's result.
func TestSearch_Properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		nodes, load := scene(Stream(seed, 10))
		grid := Candidates(nodes, Bounds{WarmIP: 4, MinimumIP: 14, WarmENI: 2, WarmPrefix: 2})
		failed := 1 << 30
		if seed%2 == 0 {
			failed = int(seed) - 4
		}
		var bound CallBound
		if seed%3 > 0 {
			for i := range nodes {
				bound = append(bound, float64(20*int(seed%3)*i))
			}
		}
		var want, above []Point
		var closest *Point
		for i, x := range grid {
			p := played(t, With(nodes, x), load, Ours).point(i, x)
			if p.Result.Failed <= failed {
				if _, _, is := p.Above(bound); is {
					above = insert(above, p)
				} else {
					want = insert(want, p)
				}
			} else if closest == nil || p.compare(*closest) < 0 {
				closest = &p
			}
		}
		above = slices.DeleteFunc(above, func(p Point) bool { return len(want) > 0 && p.Result.Held.Avg >= want[0].Result.Held.Avg })
		want = append(above, want...)
		if len(want) > 0 {
			closest = nil
		}
		if s := found(t, nodes, load, grid, failed, bound); !reflect.DeepEqual(s.Front(), want) || !reflect.DeepEqual(s.Closest(), closest) {
			t.Errorf("seed %d: %d points, want %d; closest %+v, want %+v", seed, len(s.Front()), len(want), s.Closest(), closest)
		}
	}
}
