package live

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return epoch.Add(d) }

func planOf(cfg PlanConfig, names ...string) *Plan {
	p := NewPlan(cfg)
	for _, n := range names {
		p.Put(n)
	}
	return p
}

// read begins and ends a reading of every due node.
func read(t *testing.T, p *Plan, now time.Time, r Result) []string {
	t.Helper()
	var names []string
	for {
		name, ok := p.Next(now)
		if !ok {
			break
		}
		names = append(names, name)
		p.Done(name, now, r)
		if len(names) > 10_000 {
			t.Fatal("no end of nodes that are due")
		}
	}
	return names
}

// TestNext_Edges reads a node at 0 s and checks at which second it is due again.
func TestNext_Edges(t *testing.T) {
	t.Parallel()
	ours, upstream := Result{OK: true}, Result{OK: true, Upstream: true}
	look := func(open string, visible ...string) func(*Plan) {
		return func(p *Plan) { p.Focus(open, visible, false) }
	}
	for name, row := range map[string]struct {
		cfg    PlanConfig
		before func(*Plan)
		first  Result
		after  func(*Plan)
		want   time.Duration
	}{
		"rest":                              {first: ours, want: 30 * time.Second},
		"rest, faster by wish":              {cfg: PlanConfig{Background: 5 * time.Second}, first: ours, want: 5 * time.Second},
		"rest, not faster than the rows":    {cfg: PlanConfig{Background: 5 * time.Second, Interval: 7 * time.Second}, first: ours, want: 7 * time.Second},
		"rest of upstream by wish":          {cfg: PlanConfig{Background: 5 * time.Second}, first: upstream, want: 10 * time.Second},
		"open":                              {before: look("n"), first: ours, want: 2500 * time.Millisecond},
		"open, as fast as may be":           {cfg: PlanConfig{Interval: 2 * time.Second}, before: look("n"), first: ours, want: 2 * time.Second},
		"open, slow by wish":                {cfg: PlanConfig{Interval: 20 * time.Second}, before: look("n"), first: ours, want: 10 * time.Second},
		"open, upstream":                    {before: look("n"), first: upstream, want: 10 * time.Second},
		"visible":                           {before: look("", "n"), first: ours, want: 5 * time.Second},
		"visible, not faster by wish":       {cfg: PlanConfig{Interval: 2 * time.Second}, before: look("", "n"), first: ours, want: 5 * time.Second},
		"visible, slow by wish":             {cfg: PlanConfig{Interval: 20 * time.Second}, before: look("", "n"), first: ours, want: 20 * time.Second},
		"visible, upstream":                 {before: look("", "n"), first: upstream, want: 10 * time.Second},
		"visible later":                     {first: ours, after: look("", "n"), want: 5 * time.Second},
		"no longer visible":                 {before: look("", "n"), first: ours, after: look("", "m"), want: 30 * time.Second},
		"failing":                           {first: Result{}, want: 10 * time.Second},
		"failing and open":                  {before: look("n"), first: Result{}, want: 10 * time.Second},
		"failing, slow by wish":             {cfg: PlanConfig{Interval: 20 * time.Second}, first: Result{}, want: 20 * time.Second},
		"away, open":                        {before: func(p *Plan) { p.Focus("n", nil, true) }, first: ours, want: 15 * time.Second},
		"away, rest":                        {before: func(p *Plan) { p.Focus("", nil, true) }, first: ours, want: 180 * time.Second},
		"by hand":                           {first: ours, after: func(p *Plan) { p.Force("n") }, want: time.Second},
		"by hand, upstream":                 {first: upstream, after: func(p *Plan) { p.Force("n") }, want: 10 * time.Second},
		"by hand, all as none is looked at": {first: ours, after: func(p *Plan) { p.Refresh() }, want: time.Second},
		"by hand, others are looked at":     {before: look("m"), first: ours, after: func(p *Plan) { p.Put("m"); p.Refresh() }, want: 30 * time.Second},
		"by hand, while paused":             {first: ours, after: func(p *Plan) { p.Pace(0, true); p.Force("n") }, want: time.Second},
		"by hand, away":                     {first: ours, after: func(p *Plan) { p.Focus("n", nil, true); p.Force("n") }, want: time.Second},
		"paused and gone on":                {first: ours, after: func(p *Plan) { p.Pace(0, true); p.Pace(0, false) }, want: 30 * time.Second},
		"asked beside the plan":             {first: ours, after: func(p *Plan) { p.Touch("n", at(4*time.Second)) }, want: 34 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.cfg.Workers = 8
			p := planOf(row.cfg, "n")
			if row.before != nil {
				row.before(p)
			}
			if got := read(t, p, epoch, row.first); !slices.Equal(got, []string{"n"}) {
				t.Fatalf("at first %v", got)
			}
			if row.after != nil {
				row.after(p)
			}
			onlyN := func(now time.Time) bool {
				for {
					name, ok := p.Next(now)
					if !ok || name == "n" {
						return ok
					}
				}
			}
			if onlyN(at(row.want - 1)) {
				t.Errorf("read before %s", row.want)
			}
			if wake, ok := p.Wake(at(row.want - 1)); !ok || !wake.Equal(at(row.want)) {
				t.Errorf("wake %v, %v, want %s", wake, ok, at(row.want))
			}
			if !onlyN(at(row.want)) {
				t.Errorf("not read at %s", row.want)
			}
		})
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	p := planOf(PlanConfig{Workers: 4}, "n")
	p.Focus("n", []string{"n"}, false)
	var times []time.Duration
	now := epoch
	for _, ok := range []bool{false, false, false, false, true, true, false} {
		name, due := p.Next(now)
		if !due || name != "n" {
			t.Fatalf("not due at %s", now.Sub(epoch))
		}
		times = append(times, now.Sub(epoch)/time.Second)
		p.Done("n", now.Add(time.Second), Result{OK: ok})
		var wait bool
		if now, wait = p.Wake(now); !wait {
			t.Fatal("never again")
		}
	}
	// Two failures 10 s apart, then every minute from the third on, until the first success.
	want := []time.Duration{0, 10, 20, 80, 140}
	if !slices.Equal(times[:5], want) || times[6]-times[5] > 3 {
		t.Errorf("read at %v s, want %v and then as an open node", times, want)
	}
}

func TestPaused_ReadsNothing(t *testing.T) {
	t.Parallel()
	p := planOf(PlanConfig{Workers: 4}, "a", "b")
	p.Focus("a", []string{"b"}, false)
	p.Pace(0, true)
	if got := read(t, p, at(time.Hour), Result{OK: true}); got != nil {
		t.Errorf("read %v", got)
	}
	if wake, ok := p.Wake(at(time.Hour)); ok {
		t.Errorf("wake at %v", wake)
	}
	p.Refresh()
	if got := read(t, p, at(time.Hour), Result{OK: true}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("refreshed %v", got)
	}
}

func TestNext_WhatIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	p := planOf(PlanConfig{Workers: 4}, "a", "b", "c", "d", "e")
	p.Focus("d", []string{"c", "e"}, false)
	p.Force("b")
	if got := read(t, p, epoch, Result{OK: true}); !slices.Equal(got, []string{"b", "d", "c", "e", "a"}) {
		t.Errorf("order %v", got)
	}
}

func TestNext_WorkersAreKeptForWhatIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		swept bool
		want  int // of the rest, at once
	}{
		"at the first look": {false, 15},
		"later":             {true, 14},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, now := NewPlan(PlanConfig{Workers: 16}), epoch
			for i := range 100 {
				p.Put(fmt.Sprint(i))
			}
			if row.swept {
				read(t, p, now, Result{OK: true})
				now = at(time.Minute)
			}
			n := 0
			for {
				if _, ok := p.Next(now); !ok {
					break
				}
				n++
			}
			if n != row.want {
				t.Errorf("%d of the rest at once, want %d of 16", n, row.want)
			}
			if _, ok := p.Wake(now); ok {
				t.Error("nothing can be begun, and yet there is a time to wake")
			}
			p.Focus("99", nil, false)
			if name, _ := p.Next(now); name != "99" {
				t.Errorf("picked %q", name)
			}
		})
	}
}

// TestPace_FirstRound: the first round over all nodes takes FirstWithin at most, whatever it
// costs, is not hurried if the CPU share suffices, and later rounds keep to the share.
func TestPace_FirstRound(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		nodes         int
		cost          time.Duration
		first, second time.Duration // from the first node to the last
	}{
		"a large fleet":         {5000, 3 * time.Millisecond, 20 * time.Second, 50 * time.Second},
		"a small one":           {100, 3 * time.Millisecond, time.Second, time.Second},
		"costs are not known":   {5000, 0, 0, 0},
		"costs are without end": {5000, time.Second, 20 * time.Second, MaxBackground},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPlan(PlanConfig{Workers: 32, Background: time.Millisecond, Interval: time.Millisecond})
			for i := range row.nodes {
				p.Put(fmt.Sprint(i))
			}
			p.Cost(row.cost)
			now := epoch
			for round, want := range []time.Duration{row.first, row.second} {
				begin := now
				for n := 0; n < row.nodes; {
					if n += len(read(t, p, now, Result{OK: true})); n >= row.nodes {
						break
					}
					now, _ = p.Wake(now)
				}
				if took := now.Sub(begin); took < want*9/10 || took > want*11/10+time.Second {
					t.Errorf("round %d took %s, want %s", round+1, took, want)
				}
				if !p.Swept() {
					t.Error("not everybody was begun")
				}
				now = now.Add(time.Hour)
			}
			p.Put("new")
			if p.Swept() {
				t.Error("the new one was not read")
			}
			p.Remove("new")
			if !p.Swept() {
				t.Error("the one that was not read is gone")
			}
		})
	}
}

// TestInterval_FirstLook: visible rows wait twice as long for their next reading until every
// node was read once.
func TestInterval_FirstLook(t *testing.T) {
	t.Parallel()
	p := NewPlan(PlanConfig{Workers: 32, Interval: 5 * time.Second})
	p.Put("seen")
	p.Focus("", []string{"seen"}, false)
	read(t, p, epoch, Result{OK: true})
	p.Put("new")
	if at := p.every(tierVisible, false); at != 10*time.Second {
		t.Errorf("every %s while one was never read, want 10s", at)
	}
	read(t, p, epoch, Result{OK: true})
	if at := p.every(tierVisible, false); at != 5*time.Second {
		t.Errorf("every %s, want 5s", at)
	}
}

// TestForget: a reading during which the process was suspended is repeated, and is no
// failure.
func TestForget(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		upstream bool
		want     time.Duration // after the start of the forgotten reading
	}{"ours": {false, MinForced}, "upstream": {true, UpstreamMin}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf(PlanConfig{Workers: 4}, "n")
			read(t, p, epoch, Result{OK: true, Upstream: row.upstream})
			for range BrokenAfter + 1 {
				now, _ := p.Wake(at(time.Hour))
				if _, ok := p.Next(now); !ok {
					t.Fatal("it is not due")
				}
				p.Forget("n", now)
				if wake, ok := p.Wake(now); !ok || wake.Sub(now) != row.want || p.InFlight() != 0 {
					t.Fatalf("read anew after %s, want %s; %d in flight", wake.Sub(now), row.want, p.InFlight())
				}
			}
			p.Forget("n", epoch)
			p.Forget("never was", epoch)
		})
	}
}

func TestPauseDetector(t *testing.T) {
	t.Parallel()
	base := time.Now()                                                      // with a monotonic clock
	wall := func(d time.Duration) time.Time { return base.Round(0).Add(d) } // without one
	for name, row := range map[string]struct {
		then, now time.Time
		want      time.Duration
	}{
		"beats":                    {base, base.Add(Beat), 0},
		"a busy machine":           {base, base.Add(4 * time.Second), 0},
		"a stopped process":        {base, base.Add(time.Minute), time.Minute},
		"a machine asleep":         {base, wall(time.Hour), time.Hour},
		"the first":                {time.Time{}, base, 0},
		"a clock that is set back": {base, wall(-time.Hour), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s PauseDetector
			if !row.then.IsZero() {
				s.At(row.then)
			}
			if got := s.At(row.now); got != row.want {
				t.Errorf("paused for %s, want %s", got, row.want)
			}
			if got := s.At(row.now.Add(Beat)); got != 0 {
				t.Errorf("then for %s", got)
			}
			s.Rest()
			if got := s.At(row.now.Add(time.Hour)); got != 0 {
				t.Errorf("after a rest for %s", got)
			}
		})
	}
}

// TestNext_FailingNodesLimited: each failing node may take a worker until its
// deadline.
func TestNext_FailingNodesLimited(t *testing.T) {
	t.Parallel()
	p := NewPlan(PlanConfig{Workers: 8})
	for i := range 20 {
		p.Put(fmt.Sprint(i))
	}
	read(t, p, epoch, Result{})
	n := 0
	for {
		if _, ok := p.Next(at(time.Minute)); !ok {
			break
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d ailing ones at once, want 3 of 8", n)
	}
}

func TestBackground_Widens(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		nodes      int
		cost, took time.Duration
		want       time.Duration
		widened    bool
	}{
		"small":                {100, 2 * time.Millisecond, 150 * time.Millisecond, 30 * time.Second, false},
		"just fits":            {4500, 2 * time.Millisecond, 150 * time.Millisecond, 30 * time.Second, false},
		"by the processor":     {5000, 2700 * time.Microsecond, 150 * time.Millisecond, 45 * time.Second, true},
		"by the way there":     {5000, time.Millisecond, 300 * time.Millisecond, 55 * time.Second, true},
		"not without end":      {5000, time.Second, time.Minute, MaxBackground, true},
		"nothing is known yet": {5000, 0, 0, 30 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPlan(PlanConfig{Workers: 32})
			for i := range row.nodes {
				p.Put(fmt.Sprint(i))
			}
			name, _ := p.Next(epoch)
			p.Done(name, epoch, Result{OK: true, Took: row.took})
			name, _ = p.Next(epoch)
			p.Done(name, epoch, Result{Took: time.Hour}) // a failure does not count
			p.Cost(row.cost)
			if got := p.Background(); got != row.want || p.Widened() != row.widened {
				t.Errorf("background %s, widened %v", got, p.Widened())
			}
		})
	}
}

func TestInterval_WidensWithTheRows(t *testing.T) {
	t.Parallel()
	p := planOf(PlanConfig{Workers: 1}, "a", "b", "c")
	p.Focus("", []string{"a", "b", "c"}, false)
	if p.Interval() != 5*time.Second || p.Widened() {
		t.Errorf("before %s", p.Interval())
	}
	read(t, p, epoch, Result{OK: true, Took: 3 * time.Second})
	if p.Interval() != 10*time.Second || !p.Widened() {
		t.Errorf("three rows of 3 s each: %s", p.Interval())
	}
}

// TestPace_HoldsToTheShare: 1,000 nodes of 3 ms each are 10 s of work at a third.
func TestPace_HoldsToTheShare(t *testing.T) {
	t.Parallel()
	p := NewPlan(PlanConfig{Workers: 32})
	for i := range 1000 {
		p.Put(fmt.Sprint(i))
	}
	read(t, p, epoch, Result{OK: true})
	p.Cost(3 * time.Millisecond)
	now, n := at(time.Minute), 0
	for n < 1000 {
		got := len(read(t, p, now, Result{OK: true}))
		if got > burst+1 {
			t.Fatalf("%d at once", got)
		}
		if n += got; n == 1000 {
			break
		}
		var ok bool
		if now, ok = p.Wake(now); !ok {
			t.Fatal("never again")
		}
	}
	if took := now.Sub(at(time.Minute)); took < 9*time.Second || took > 11*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestKept_WhatIsOnTheScreen(t *testing.T) {
	t.Parallel()
	p := NewPlan(PlanConfig{Workers: 64})
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("n%02d", i))
		p.Put(names[i])
	}
	round := func(now time.Time) (kept, dropped []string) {
		for {
			name, ok := p.Next(now)
			if !ok {
				return kept, dropped
			}
			keep, drop := p.Done(name, now, Result{OK: true})
			if keep {
				kept = append(kept, name)
			}
			dropped = append(dropped, drop...)
		}
	}
	p.Focus("", names[:30], false)
	kept, dropped := round(epoch)
	if len(kept) != MaxKept || dropped != nil {
		t.Fatalf("kept %v, dropped %v", kept, dropped)
	}
	// The same nodes stay from round to round: rotating them would gain nothing.
	if again, dropped := round(at(5 * time.Second)); !slices.Equal(again, kept) || dropped != nil {
		t.Errorf("then kept %v, dropped %v", again, dropped)
	}
	// Scrolled by ten: connections to rows that left are closed, new rows take their places.
	gone := p.Focus("", names[10:40], false)
	if !slices.Equal(gone, names[:10]) || p.Kept() != 6 {
		t.Errorf("scrolled: closed %v, %d kept", gone, p.Kept())
	}
	if _, dropped := round(at(40 * time.Second)); len(dropped) > 0 || p.Kept() != MaxKept {
		t.Errorf("dropped %v, %d kept", dropped, p.Kept())
	}
	// The open node displaces another one.
	p.Focus(names[0], names[10:40], false)
	_, dropped = round(at(80 * time.Second))
	if len(dropped) != 1 || !p.Keeps(names[0]) || p.Kept() != MaxKept {
		t.Errorf("opened: dropped %v, %d kept", dropped, p.Kept())
	}
	// One that fails, one that leaves, then all, when the screen is hidden.
	p.Force(names[0])
	name, _ := p.Next(at(100 * time.Second))
	p.Done(name, at(100*time.Second), Result{})
	if name != names[0] || p.Keeps(name) {
		t.Errorf("%s is kept after it failed", name)
	}
	before := p.Kept()
	if gone := p.Focus(names[0], names[10:40], true); len(gone) != before || p.Kept() != 0 {
		t.Errorf("away: closed %v", gone)
	}
}

func TestSweep_CountsNoIdleTime(t *testing.T) {
	t.Parallel()
	p := planOf(PlanConfig{Workers: 1}, "a", "b", "c")
	now := epoch
	for i := range 6 {
		name, ok := p.Next(now)
		if !ok {
			t.Fatalf("pick %d", i)
		}
		now = now.Add(2 * time.Second)
		p.Done(name, now, Result{OK: true, Took: 2 * time.Second})
		if i%3 == 2 {
			if p.Sweep() != 6*time.Second {
				t.Errorf("sweep %s", p.Sweep())
			}
			now = now.Add(time.Hour)
		}
	}
	p.Remove("a")
	p.Remove("b")
	name, _ := p.Next(now)
	p.Done(name, now.Add(time.Second), Result{OK: true})
	if p.Sweep() != time.Second {
		t.Errorf("sweep of one node %s", p.Sweep())
	}
}

func TestRemove_WhileItIsRead(t *testing.T) {
	t.Parallel()
	p := planOf(PlanConfig{Workers: 1}, "a", "b")
	name, _ := p.Next(epoch)
	p.Remove(name)
	if p.InFlight() != 0 {
		t.Error("its worker is not free")
	}
	p.Put(name)
	if keep, drop := p.Done(name, epoch, Result{OK: true}); keep || drop != nil {
		t.Error("what was read of the one before counts for the one after")
	}
	if got := read(t, p, epoch, Result{OK: true}); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("order %v", got)
	}
}
