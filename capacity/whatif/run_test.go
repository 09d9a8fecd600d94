package whatif

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/warmpool"
)

// day is a day of 100 nodes with 5,000 pod events.
func day(tb testing.TB, s Settings) ([]Node, Load) {
	tb.Helper()
	var nodes []Node
	for range 100 {
		nodes = append(nodes, Node{Settings: s, Pods: 10})
	}
	steps := Arrivals(2500./24/60, time.Hour, 24*time.Hour, 1)
	if n := len(steps); n < 4500 || n > 5500 {
		tb.Fatalf("%d steps", n)
	}
	return nodes, Load{Steps: steps, For: 24 * time.Hour, Seed: 1, Free: -1}
}

func m5large(warm ...int) Settings {
	i, _ := limits.Lookup("m5.large")
	s := Settings{Instance: i, MaxPods: 29, WarmENI: 1, WarmPrefix: 1}
	if len(warm) > 0 {
		s.WarmIP, s.MinimumIP = warm[0], warm[1]
	}
	return s
}

func play(tb testing.TB, nodes []Node, load Load, m Model) Result {
	tb.Helper()
	return played(tb, nodes, load, m).Result()
}

func played(tb testing.TB, nodes []Node, load Load, m Model) *Run {
	tb.Helper()
	r := NewRun(nodes, load, m)
	for r.Next() {
	}
	if err := r.Err(); err != nil {
		tb.Fatal(err)
	}
	return r
}

func BenchmarkRun(b *testing.B) {
	for name, m := range map[string]Model{"ours": Ours, "upstream": Upstream} {
		for warm, s := range map[string]Settings{"eni": m5large(), "ip": m5large(2, 12)} {
			b.Run(name+"/"+warm, func(b *testing.B) {
				nodes, load := day(b, s)
				for b.Loop() {
					play(b, nodes, load, m)
				}
			})
		}
	}
}

// TestRun_FollowsThePolicy changes one field of the policy, and one constant of the planner.
func TestRun_FollowsThePolicy(t *testing.T) {
	t.Parallel()
	load := Load{Steps: Arrivals(1, 10*time.Minute, 4*time.Hour, 7), For: 4 * time.Hour, Seed: 7, Free: -1}
	run := func(s Settings, m Model) Result { return play(t, []Node{{s, 8}, {s, 8}}, load, m) }
	was := run(m5large(2, 0), Ours)
	if more := run(m5large(6, 0), Ours); more.Held.Avg < was.Held.Avg+6 || more.Calls == was.Calls {
		t.Errorf("WARM_IP_TARGET 2 %+v\n6 %+v", was, more)
	}
	slow := Ours
	slow.Plan = func(s warmpool.Snapshot, p warmpool.Policy, now time.Time) []warmpool.Action {
		p.ScaleDownInterval = time.Hour
		return warmpool.Plan(s, p, now)
	}
	if less := run(m5large(2, 0), slow); less.Calls.Releases >= was.Calls.Releases/2 || less.Held.Avg <= was.Held.Avg {
		t.Errorf("scale-down every 30 s %+v\nevery hour %+v", was, less)
	}
}

// TestRun_WaitsForCooling: upstream counts addresses in cooldown as available, so with a small
// target a pod may wait for a cooldown to end, and its ADDs fail meanwhile.
func TestRun_WaitsForCooling(t *testing.T) {
	t.Parallel()
	load := Load{Steps: []Step{{0, 0, -1}, {time.Second, 0, 1}, {2 * time.Second, 0, 1}}, For: time.Hour, Free: -1}
	for name, m := range map[string]Model{"ours": Ours, "upstream": Upstream} {
		r := play(t, []Node{{m5large(1, 0), 5}}, load, m)
		if r.Waited != 1 || r.Waiting != 0 || r.Longest > 31*time.Second || (name == "ours") != (r.Failed == 0) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestRun_SubnetRunsDry(t *testing.T) {
	t.Parallel()
	nodes := []Node{{m5large(), 8}, {m5large(), 8}}
	steps := append(Burst(0, 12, time.Minute), Burst(1, 12, time.Minute)...)
	SortSteps(steps)
	for free, served := range map[int]bool{-1: true, 20: true, 10: false, 0: false} {
		r := play(t, nodes, Load{Steps: steps, For: time.Hour, Free: free}, Ours)
		if (r.Waiting == 0) != served || free < 0 && r.Calls.Refused > 0 {
			t.Errorf("%d free: %+v", free, r)
		}
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	steps := Arrivals(10, 30*time.Minute, 24*time.Hour, 3)
	at, come, gone := time.Duration(0), 0, 0
	for _, s := range steps {
		if s.At < at {
			t.Fatal("not in order")
		}
		at = s.At
		if s.Pods > 0 {
			come++
		} else if gone++; gone > come {
			t.Fatal("more pods go than came")
		}
	}
	if come < 14000 || come > 14800 || come-gone < 240 || come-gone > 360 {
		t.Errorf("%d came, %d went: want 14400, and 300 that live", come, gone)
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	n := func(v int) *int { return &v }
	for name, x := range map[string]struct {
		from, to Seen
		want     string
	}{
		"nothing":        {Seen{Pods: 3}, Seen{Pods: 3}, ""},
		"some come":      {Seen{Pods: 3}, Seen{Pods: 5}, "5s+1 10s+1"},
		"some go":        {Seen{Pods: 3, ADDs: n(7)}, Seen{Pods: 1, ADDs: n(7)}, "5s-1 10s-1"},
		"one replaced":   {Seen{Pods: 3, ADDs: n(7)}, Seen{Pods: 3, ADDs: n(8)}, "10s-1 10s+1"},
		"short lives":    {Seen{ADDs: n(7)}, Seen{ADDs: n(9)}, "5s+1 5s-1 10s+1 10s-1"},
		"more than seen": {Seen{Pods: 1, ADDs: n(7)}, Seen{Pods: 2, ADDs: n(10)}, "3.333333333s-1 3.333333333s+1 6.666666666s-1 6.666666666s+1 10s+1"},
		"a new daemon":   {Seen{Pods: 3, ADDs: n(70)}, Seen{Pods: 4, ADDs: n(0)}, "10s+1"},
		"ADDs unknown":   {Seen{Pods: 3, ADDs: n(7)}, Seen{Pods: 2}, "10s-1"},
	} {
		x.to.At = 10 * time.Second
		var got []string
		for s := range Between(0, x.from, x.to) {
			got = append(got, fmt.Sprintf("%v%+d", s.At, s.Pods))
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

func TestMeter(t *testing.T) {
	t.Parallel()
	var m meter
	m.begin(epoch)
	for _, x := range []struct{ after, change int }{{0, 10}, {93, 10}, {97, 20}, {99, -40}} {
		m.add(epoch.Add(time.Duration(x.after)*time.Second), x.change)
	}
	if got, want := m.spread(epoch.Add(100*time.Second)), (Spread{Avg: 10.9, P95: 20, Max: 40}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	n := Node{Settings: m5large(), Pods: 8}
	other := Node{Settings: m5large(2, 12), Pods: 8}
	today, changed := Forecast(n, time.Hour, 1, Ours), Forecast(other, time.Hour, 1, Ours)
	if today.Held.SubnetAddresses() != 20 || changed.Held.SubnetAddresses() != 14 || today.Run.Held.Avg < changed.Run.Held.Avg {
		t.Errorf("%+v, %+v", today, changed)
	}
	if got := play(t, []Node{other}, Load{For: time.Hour, Seed: 1, Free: -1, Steps: Replacements(1, time.Hour, 1)}, Ours); got != changed.Run {
		t.Errorf("%+v, but a run gives %+v", changed.Run, got)
	}
	next := Next(n, other.Settings, Ours)
	if len(next) == 0 {
		t.Fatal("nothing next")
	}
	if _, ok := next[0].(warmpool.UnassignAddresses); !ok {
		t.Errorf("next %v", next)
	}
}

// BenchmarkLook measures a key press on the what-if screen.
func BenchmarkLook(b *testing.B) {
	for _, c := range []struct {
		instance string
		pods     int
	}{{"m5.large", 20}, {"m5.24xlarge", 110}} {
		b.Run(c.instance, func(b *testing.B) {
			s := m5large()
			s.Instance, _ = limits.Lookup(c.instance)
			s.MaxPods = 250
			t := s
			t.WarmIP = 5
			for b.Loop() {
				Forecast(Node{t, c.pods}, time.Hour, 1, Ours)
				Next(Node{s, c.pods}, t, Ours)
			}
		})
	}
}
