package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world is a fleet that a plan reads: the state of each node, the readings in flight, and
// the time of each reading.
type world struct {
	plan    *Plan
	rng     *rand.Rand
	now     time.Time
	nodes   map[string]*being
	ids     int
	workers int
	reading []reading
	away    bool
	paused  bool
}

type being struct {
	upstream, dead bool
	slow           time.Duration
	known          bool      // the plan knows that it runs upstream
	failed         int       // failures in a row
	last           time.Time // start of the last reading
}

type reading struct {
	name string
	end  time.Time
	of   *being
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	workers := []int{1, 2, 5, 32}[rng.IntN(4)]
	w := &world{
		rng: rng, now: epoch, nodes: map[string]*being{}, workers: workers,
		plan: NewPlan(PlanConfig{Workers: workers, Listing: rng.IntN(2) == 0}),
	}
	for range 1 + rng.IntN(60) {
		w.join()
	}
	return w
}

func (w *world) join() {
	w.ids++
	name := fmt.Sprintf("n%d", w.ids)
	w.nodes[name] = &being{
		upstream: w.rng.IntN(3) == 0, dead: w.rng.IntN(6) == 0,
		slow: time.Duration(w.rng.IntN(300)) * time.Millisecond,
	}
	w.plan.Put(name)
}

func (w *world) some() string {
	names := slices.Sorted(maps.Keys(w.nodes))
	if len(names) == 0 {
		return "none"
	}
	return names[w.rng.IntN(len(names))]
}

// disturb does what users or a cluster may do.
func (w *world) disturb() {
	switch w.rng.IntN(12) {
	case 0:
		w.join()
	case 1:
		name := w.some()
		w.plan.Remove(name)
		delete(w.nodes, name)
	case 2, 3, 4:
		var visible []string
		for range w.rng.IntN(20) {
			visible = append(visible, w.some())
		}
		w.away = w.rng.IntN(8) == 0
		w.plan.Focus(w.some(), visible, w.away)
	case 5:
		w.plan.Refresh()
	case 6:
		w.paused = w.rng.IntN(4) == 0
		w.plan.Pace(time.Duration(w.rng.IntN(12))*time.Second, w.paused)
	case 7:
		w.plan.Cost(time.Duration(w.rng.IntN(5)) * time.Millisecond)
	case 8:
		w.plan.Force(w.some())
	case 9:
		if b := w.nodes[w.some()]; b != nil {
			b.dead = !b.dead
		}
	case 10:
		if w.rng.IntN(20) == 0 {
			w.plan.Listed()
		}
	}
}

// step advances time to the next thing that happens.
func (w *world) step(t *testing.T) {
	wake, ok := w.plan.Wake(w.now)
	if ok && !wake.After(w.now) {
		t.Fatalf("at %s it is to be woken at once, but Next had nothing", w.now.Sub(epoch))
	}
	next := w.now.Add(time.Second)
	if ok && wake.Before(next) {
		next = wake
	}
	for _, r := range w.reading {
		if r.end.Before(next) {
			next = r.end
		}
	}
	w.now = next
	var still []reading
	for _, r := range w.reading {
		if r.end.After(w.now) {
			still = append(still, r)
			continue
		}
		if w.nodes[r.name] != r.of {
			continue
		}
		if r.of.dead {
			r.of.failed++
		} else {
			r.of.failed, r.of.known = 0, r.of.upstream
		}
		w.plan.Done(r.name, w.now, Result{OK: !r.of.dead, Upstream: r.of.upstream, Took: w.now.Sub(r.of.last)})
	}
	w.reading = still
	if w.plan.Kept() > MaxKept {
		t.Fatalf("%d tunnels kept", w.plan.Kept())
	}
}

// begin begins every due reading, and checks each pick.
func (w *world) begin(t *testing.T) {
	for {
		name, ok := w.plan.Next(w.now)
		if !ok {
			return
		}
		b := w.nodes[name]
		if b == nil {
			t.Fatalf("%s is not there any more", name)
		}
		for _, r := range w.reading {
			if r.of == b {
				t.Fatalf("%s is read twice at a time", name)
			}
		}
		if w.plan.cfg.Listing && !w.plan.nodes[name].tier.focused() {
			t.Fatalf("%s is not on the screen, and is read before all nodes are listed", name)
		}
		least := MinForced
		if b.known {
			least = UpstreamMin
		}
		if since := w.now.Sub(b.last); !b.last.IsZero() && since < least {
			t.Fatalf("%s is read after %s, %s is allowed", name, since, least)
		}
		b.last = w.now
		took := b.slow
		if b.dead {
			took = 5 * time.Second
		}
		w.reading = append(w.reading, reading{name, w.now.Add(took), b})
		if w.plan.InFlight() > w.workers {
			t.Fatalf("%d in flight by %d workers", w.plan.InFlight(), w.workers)
		}
	}
}

// TestPlan_Properties runs plans against random fleets, users and clusters.
func TestPlan_Properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(seed)
			for range 1500 {
				w.begin(t)
				if w.rng.IntN(5) == 0 {
					w.disturb()
					w.begin(t)
				}
				w.step(t)
			}
			// Undisturbed, every node is read within the plan's own limit.
			w.plan.Listed()
			w.plan.Pace(DefaultInterval, false)
			w.plan.Focus(w.some(), nil, false)
			for _, b := range w.nodes {
				b.dead = false
			}
			from := w.now
			limit := from.Add(2 * (w.plan.Background() + BrokenEvery + time.Duration(len(w.nodes))*6*time.Second/time.Duration(w.workers)))
			for w.now.Before(limit) {
				w.begin(t)
				w.step(t)
			}
			for name, b := range w.nodes {
				if b.last.Before(from) {
					t.Errorf("%s was not read in %s", name, limit.Sub(from))
				}
			}
		})
	}
}

// TestPlan_NoStarvation: even a single worker that the visible nodes keep
// busy reads the others in between.
func TestPlan_NoStarvation(t *testing.T) {
	t.Parallel()
	p := NewPlan(PlanConfig{Workers: 1, Interval: MinOpen})
	last := map[string]time.Time{}
	var visible []string
	for i := range 60 {
		name := fmt.Sprint(i)
		p.Put(name)
		if i < 30 {
			visible = append(visible, name)
		}
	}
	p.Focus("0", visible, false)
	now := epoch
	longest := time.Duration(0)
	for now.Sub(epoch) < time.Hour {
		p.Force("0") // as if the refresh key were held down
		name, ok := p.Next(now)
		if !ok {
			var wake bool
			if now, wake = p.Wake(now); !wake {
				t.Fatal("never again")
			}
			continue
		}
		if before, was := last[name]; was {
			longest = max(longest, now.Sub(before))
		}
		last[name] = now
		now = now.Add(2 * time.Second)
		p.Done(name, now, Result{OK: true, Took: 2 * time.Second})
	}
	// One in five picks goes to the 30 other nodes: 30·5·2 s, plus some rounding.
	if len(last) != 60 || longest > 6*time.Minute {
		t.Errorf("%d nodes read, one only after %s", len(last), longest)
	}
}
