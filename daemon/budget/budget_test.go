package budget_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/budget"
)

const (
	read  = "DescribeNetworkInterfaces"
	write = "CreateNetworkInterface"
)

var epoch = time.Unix(1_790_000_000, 0)

// never is a jitter that always returns the lowest number, always returns the highest.
func never(time.Duration) time.Duration    { return 0 }
func always(n time.Duration) time.Duration { return n - 1 }

// burst counts the requests that a budget lets through at once, to a bound that is above all
// budgets of these tests.
func burst(b *budget.Budget, now time.Time, action string, want budget.Want) (n int) {
	for n < 1000 && b.Take(now, action, want) == 0 {
		n++
	}
	return n
}

func TestTake_ClassesAndReserve(t *testing.T) {
	t.Parallel()
	p := budget.Policy{Read: budget.Class{Burst: 10, PerSecond: 4, Reserve: 3}, Write: budget.Class{Burst: 5, PerSecond: 1, Reserve: 2},
		Actions: map[string]budget.Class{"AttachNetworkInterface": {Burst: 2, PerSecond: 1}, "GetIpamPoolCidrs": {Burst: 0.5}}}
	for _, row := range []struct {
		action               string
		housekeeping, urgent int // at once, one after the other
	}{
		{read, 7, 3}, {"GetConsoleOutput", 7, 3}, {"ListImagesInRecycleBin", 7, 3},
		{write, 3, 2}, {"CreateTags", 3, 2}, {"", 3, 2},
		{"AttachNetworkInterface", 2, 0}, // no reserve
		{"GetIpamPoolCidrs", 1, 0},       // every bucket holds at least one request
	} {
		b := budget.New(p, never)
		if got := burst(b, epoch, row.action, budget.Housekeeping); got != row.housekeeping {
			t.Errorf("%s: housekeeping got %d at once, want %d", row.action, got, row.housekeeping)
		}
		if got := burst(b, epoch, row.action, budget.Urgent); got != row.urgent {
			t.Errorf("%s: urgent requests got %d more, want %d", row.action, got, row.urgent)
		}
	}
	b := budget.New(p, never)
	burst(b, epoch, write, budget.Urgent)
	if got := burst(b, epoch, "CreateTags", budget.Urgent); got != 5 {
		t.Errorf("another action of the class got %d, want 5: each has its own bucket", got)
	}
	if wait := b.Take(epoch, write, budget.Urgent); wait < time.Second || wait > time.Second+time.Millisecond {
		t.Errorf("an empty bucket at 1/s asks for %v, want 1 s", wait)
	}
	if wait := b.Take(epoch, write, budget.Housekeeping); wait < 3*time.Second || wait > 3*time.Second+time.Millisecond {
		t.Errorf("housekeeping waits %v, want the 3 s that fill the reserve too", wait)
	}
}

// At the lowest rate housekeeping waits little longer than an urgent request, and gets at
// least every fourth request: a deletion has only minutes for its tries.
func TestTake_HousekeepingAtTheFloor(t *testing.T) {
	t.Parallel()
	slow := func() (*budget.Budget, time.Time) {
		b := budget.New(budget.Policy{}, never)
		now := epoch
		for range 30 {
			now = now.Add(time.Second)
			b.Take(now, write, budget.Urgent)
			b.Throttled(now, now, write)
		}
		burst(b, now, write, budget.Urgent)
		return b, now
	}
	b, now := slow()
	urgent, housekeeping := b.Take(now, write, budget.Urgent), b.Take(now, write, budget.Housekeeping)
	if housekeeping < urgent || housekeeping > urgent+5*time.Second {
		t.Errorf("housekeeping waits %v and urgent requests %v", housekeeping, urgent)
	}
	// Both kinds keep asking, urgent ones first, while throttles keep the rate low.
	b, now = slow()
	var served []budget.Want
	start := now
	for last := now; len(served) < 40; now = now.Add(250 * time.Millisecond) {
		if now.Sub(start) > 24*time.Hour { // 40 requests at the floor take 40 minutes
			t.Fatalf("only %d of 40 requests were served in a day", len(served))
		}
		for _, want := range []budget.Want{budget.Urgent, budget.Urgent, budget.Housekeeping} {
			if b.Take(now, write, want) == 0 {
				served = append(served, want)
			}
		}
		if now.Sub(last) >= 5*time.Minute {
			last = now
			b.Throttled(now, now, write)
		}
	}
	inRow := 0
	for i, want := range served {
		inRow++
		if want == budget.Housekeeping {
			inRow = 0
		}
		if inRow > 3 {
			t.Fatalf("housekeeping waits at request %d: %v", i, served)
		}
	}
	if n := len(slices.DeleteFunc(served, func(w budget.Want) bool { return w == budget.Urgent })); n > 12 {
		t.Errorf("%d of 40 requests were housekeeping", n)
	}
	// A reservation of housekeeping that gave up delays no other request.
	b, now = slow()
	b.Take(now, write, budget.Housekeeping)
	for range 6 {
		now = now.Add(61 * time.Second)
		if wait := b.Take(now, write, budget.Urgent); wait > 0 {
			t.Fatalf("an urgent request waits %v for no request", wait)
		}
	}
}

// A policy with missing or senseless figures works.
func TestNew_Defaults(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, p := range map[string]budget.Policy{
		"zero": {},
		"senseless": {Read: budget.Class{Burst: -1, PerSecond: nan, Reserve: 9}, Write: budget.Class{Burst: nan, PerSecond: -3, Reserve: -1},
			Floor: nan, Shrink: 7, Grow: -1, Forget: -time.Second},
	} {
		b := budget.New(p, always)
		for _, action := range []string{read, write} {
			if wait := b.Take(epoch, action, budget.Housekeeping); wait != 0 {
				t.Errorf("%s: the first %s waits %v", name, action, wait)
			}
			b.Throttled(epoch, epoch, action)
			if wait := b.Take(epoch, action, budget.Urgent); wait <= 0 || wait > 2*time.Minute {
				t.Errorf("%s: after a throttle %s waits %v", name, action, wait)
			}
		}
	}
}

// Throttles halve the rate down to the floor and empty the bucket. Full jitter spreads the
// next request over twice the rate's interval.
func TestThrottled_ShrinksAndJitters(t *testing.T) {
	t.Parallel()
	p := budget.Policy{Write: budget.Class{Burst: 20, PerSecond: 2}, Floor: 0.25, Shrink: 0.5}
	for _, row := range []struct {
		throttles int
		rate      float64
	}{{1, 1}, {2, 0.5}, {3, 0.25}, {9, 0.25}} {
		early, late := budget.New(p, never), budget.New(p, always)
		for i := range row.throttles {
			at := epoch.Add(time.Duration(i) * time.Nanosecond)
			early.Throttled(at, at, write)
			late.Throttled(at, at, write)
		}
		now := epoch.Add(time.Duration(row.throttles) * time.Nanosecond)
		if got := late.States(now)[0].PerSecond; got != row.rate {
			t.Errorf("%d throttles: %v requests per second, want %v", row.throttles, got, row.rate)
		}
		if got := burst(early, now, write, budget.Urgent); got != 1 {
			t.Errorf("%d throttles, least jitter: %d requests at once, want 1: EC2's bucket is empty", row.throttles, got)
		}
		interval := time.Duration(float64(time.Second) / row.rate)
		if wait := late.Take(now, write, budget.Urgent); wait < 2*interval-time.Millisecond || wait > 2*interval+time.Millisecond {
			t.Errorf("%d throttles, most jitter: waits %v, want %v", row.throttles, wait, 2*interval)
		}
	}
}

func TestThrottled_SideBySideCountsOnce(t *testing.T) {
	t.Parallel()
	b := budget.New(budget.Policy{Write: budget.Class{Burst: 20, PerSecond: 2}, Shrink: 0.5}, always)
	for i := range 15 {
		b.Throttled(epoch, epoch.Add(time.Duration(i+1)*time.Millisecond), write)
	}
	now := epoch.Add(time.Second)
	if got := b.States(now)[0].PerSecond; got != 1 {
		t.Errorf("15 requests refused side by side: %v per second, want 1", got)
	}
	b.Succeeded(epoch, now, write)
	if got := b.States(now)[0].PerSecond; got != 1 {
		t.Errorf("a success that began before the throttle raised the rate to %v", got)
	}
	b.Throttled(now, now, write)
	if got := b.States(now)[0].PerSecond; got != 0.5 {
		t.Errorf("the next request was refused too: %v per second, want 0.5", got)
	}
	if got := b.States(now)[0]; !got.Slowed() || !got.Throttled.Equal(now) || got.Share != 2 {
		t.Errorf("state %+v", got)
	}
}

// Successes restore the rate in equal steps; a long time without throttling restores it at
// once.
func TestSucceeded_Restores(t *testing.T) {
	t.Parallel()
	p := budget.Policy{Write: budget.Class{Burst: 20, PerSecond: 2}, Shrink: 0.5, Grow: 0.25, Forget: time.Minute}
	b := budget.New(p, never)
	for i := range 3 {
		b.Throttled(epoch.Add(time.Duration(i)), epoch.Add(time.Duration(i)), write)
	}
	now := epoch.Add(time.Second)
	for i, want := range []float64{0.75, 1.25, 1.75, 2, 2} {
		b.Succeeded(now, now, write)
		if got := b.States(now)[0].PerSecond; got != want {
			t.Errorf("after %d successes %v per second, want %v", i+1, got, want)
		}
	}
	b.Throttled(now, now, write)
	if got := b.States(now.Add(time.Minute - 1))[0].PerSecond; got != 1 {
		t.Errorf("just before the throttle is forgotten: %v per second, want 1", got)
	}
	if got := b.States(now.Add(time.Minute))[0].PerSecond; got != 2 {
		t.Errorf("when the throttle is forgotten: %v per second, want 2", got)
	}
}

func TestTake_ClockSetBack(t *testing.T) {
	t.Parallel()
	b := budget.New(budget.Policy{Write: budget.Class{Burst: 2, PerSecond: 1}}, never)
	burst(b, epoch, write, budget.Urgent)
	back := epoch.Add(-time.Hour)
	if got := burst(b, back, write, budget.Urgent); got != 0 {
		t.Errorf("a clock that was set back brought %d requests", got)
	}
	if got := burst(b, back.Add(1500*time.Millisecond), write, budget.Urgent); got != 1 {
		t.Errorf("1.5 s later %d requests, want 1: time goes on from where the clock is", got)
	}
}

// step is one event of a random history.
type step struct {
	pass   time.Duration
	action string
	want   budget.Want
	answer int // 0: throttled, 1: served, 2: in flight
}

func history(r *rand.Rand, n int) []step {
	out := make([]step, n)
	for i := range out {
		out[i] = step{time.Duration(r.Int64N(int64(3 * time.Second))), []string{read, write}[r.IntN(2)], budget.Want(r.IntN(2)), r.IntN(3)}
		if r.IntN(3) == 0 {
			out[i].pass = 0
		}
	}
	return out
}

// run plays a history and returns the result of Take at each step.
func run(b *budget.Budget, steps []step, seen func(s step, at time.Duration, wait time.Duration)) (waits []time.Duration) {
	var at time.Duration
	for _, s := range steps {
		at += s.pass
		now := epoch.Add(at)
		wait := b.Take(now, s.action, s.want)
		waits = append(waits, wait)
		if seen != nil {
			seen(s, at, wait)
		}
		switch {
		case wait > 0:
		case s.answer == 0:
			b.Throttled(now, now, s.action)
		case s.answer == 1:
			b.Succeeded(now, now, s.action)
		}
	}
	return waits
}

func random(seed uint64) (budget.Policy, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 1))
	class := func() budget.Class {
		return budget.Class{Burst: 1 + 20*r.Float64(), PerSecond: 0.1 + 5*r.Float64(), Reserve: 8 * r.Float64()}
	}
	return budget.Policy{Read: class(), Write: class(), Floor: 0.01 + r.Float64()/4, Shrink: 0.2 + 0.6*r.Float64(), Grow: r.Float64() / 4, Forget: time.Duration(1+r.IntN(60)) * time.Second}, r
}

func jitterOf(seed uint64) budget.Jitter {
	r := rand.New(rand.NewPCG(seed, 2))
	return func(n time.Duration) time.Duration { return time.Duration(r.Int64N(int64(n))) }
}

// Whatever EC2 answers, in any period an action gets at most its burst plus its rate times
// the length of the period.
func TestProperty_NeverMoreThanTheShare(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		p, r := random(seed)
		granted := map[string][]time.Duration{}
		run(budget.New(p, jitterOf(seed)), history(r, 200), func(s step, at, wait time.Duration) {
			if wait == 0 {
				granted[s.action] = append(granted[s.action], at)
			}
		})
		for action, times := range granted {
			c := p.Read
			if action == write {
				c = p.Write
			}
			for i := range times {
				for j := i; j < len(times); j++ {
					if most := c.Burst + c.PerSecond*(times[j]-times[i]).Seconds(); float64(j-i+1) > most+1e-6 {
						t.Fatalf("seed %d: %d times %s in %v, at most %.2f (%+v)", seed, j-i+1, action, times[j]-times[i], most, c)
					}
				}
			}
		}
	}
}

// The same history with the same jitter returns the same waits.
func TestProperty_Deterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		p, r := random(seed)
		steps := history(r, 200)
		if a, b := run(budget.New(p, jitterOf(seed)), steps, nil), run(budget.New(p, jitterOf(seed)), steps, nil); !slices.Equal(a, b) {
			t.Fatalf("seed %d: %v and %v", seed, a, b)
		}
	}
}

// After any history a request that waits as long as Take returned succeeds at its next try,
// housekeeping too; or at the one after that if the last throttle was forgotten meanwhile.
// The floor bounds the waits.
func TestProperty_WaitIsEnoughAndBounded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		p, r := random(seed)
		b := budget.New(p, jitterOf(seed))
		steps := history(r, 100)
		run(b, steps, nil)
		now := epoch
		for _, s := range steps {
			now = now.Add(s.pass)
		}
		for _, action := range []string{read, write} {
			for _, want := range []budget.Want{budget.Urgent, budget.Housekeeping} {
				var waits []time.Duration
				for range 3 {
					wait := b.Take(now, action, want)
					if wait == 0 {
						break
					}
					waits = append(waits, wait)
					now = now.Add(wait)
				}
				most := time.Duration(10 / p.Floor * float64(time.Second))
				if len(waits) > 2 || len(waits) == 2 && stateOf(b, now, action).Slowed() {
					t.Errorf("seed %d: %s (%d) had to wait %v", seed, action, want, waits)
				}
				if len(waits) > 0 && slices.Max(waits) > most {
					t.Errorf("seed %d: %s waits %v, at most %v", seed, action, waits, most)
				}
			}
		}
	}
}

func stateOf(b *budget.Budget, now time.Time, action string) budget.State {
	all := b.States(now)
	return all[slices.IndexFunc(all, func(s budget.State) bool { return s.Action == action })]
}

// After any history the budget is restored once EC2 has throttled nothing for a while and
// the bucket has had time to fill.
func TestProperty_Recovers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		p, r := random(seed)
		b := budget.New(p, jitterOf(seed))
		steps := history(r, 100)
		run(b, steps, nil)
		now := epoch.Add(time.Hour)
		b.States(now) // that hour refills at the reduced rate; the next one at the full rate
		now = now.Add(time.Hour)
		for _, s := range b.States(now) {
			c := p.Read
			if s.Action == write {
				c = p.Write
			}
			if s.Slowed() || math.Abs(s.Saved-c.Burst) > 1e-9 {
				t.Errorf("seed %d: after an hour without throttling %+v, want %+v", seed, s, c)
			}
		}
	}
}

// A hundred nodes that share one account's bucket adapt to each other: all their requests
// succeed, in about the time that the account allows, and few are refused.
func TestShares_OfManyNodes(t *testing.T) {
	t.Parallel()
	const nodes, each, size, perSecond = 100, 6, 50.0, 5.0
	type node struct {
		b    *budget.Budget
		next time.Duration
		left int
	}
	fleet := make([]*node, nodes)
	for i := range fleet {
		fleet[i] = &node{budget.New(budget.Policy{}, jitterOf(uint64(i))), 0, each}
	}
	var at time.Duration
	tokens, last, refused, served := size, time.Duration(0), 0, 0
	for served < nodes*each && at < time.Hour {
		at = time.Hour
		var n *node
		for _, f := range fleet {
			if f.left > 0 && f.next < at {
				n, at = f, f.next
			}
		}
		now := epoch.Add(at)
		if wait := n.b.Take(now, write, budget.Urgent); wait > 0 {
			n.next = at + wait
			continue
		}
		tokens, last = min(size, tokens+perSecond*(at-last).Seconds()), at
		if tokens < 1 {
			refused++
			n.b.Throttled(now, now, write)
			continue
		}
		tokens--
		served++
		n.left--
		n.b.Succeeded(now, now, write)
	}
	bound := time.Duration((nodes*each - size) / perSecond * float64(time.Second))
	t.Logf("%d requests in %v (bound %v), %d refused", served, at, bound, refused)
	if served != nodes*each || at > 2*bound {
		t.Errorf("%d of %d requests in %v; the account alone would take %v", served, nodes*each, at, bound)
	}
	if refused > 4*nodes*each {
		t.Errorf("%d of %d requests were refused", refused, refused+served)
	}
}
