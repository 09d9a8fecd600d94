package warmpool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// EC2's durations in this file's tests: an ADD comes every 5 ms, so many come during one
// assign, and an attach takes longer than several assigns.
const (
	arrivalEvery = 5 * time.Millisecond
	assignTakes  = 200 * time.Millisecond
	attachTakes  = 3 * time.Second
)

// clocked is a shell whose operations end after fixed durations.
type clocked struct {
	*shell
	assignTakes, attachTakes   time.Duration
	due                        []time.Time // of shell.flying
	assigns, attaches, mostNew int         // mostNew: the most attaches in flight at once
}

func newClocked(t *testing.T, limits Limits, p Policy) *clocked {
	sh := &shell{t: t, d: seeded(1), now: epoch, p: timers(p)}
	sh.book = ipam.New(ipam.Options{Cooldown: sh.p.Cooldown})
	sh.s.Limits, sh.s.Waiting = limits, []int{0}
	sh.attach(ipam.ENI{Primary: true}, 0, false)
	return &clocked{shell: sh, assignTakes: assignTakes, attachTakes: attachTakes}
}

func (c *clocked) wake() {
	c.t.Helper()
	c.shell.wake()
	for _, a := range c.flying[len(c.due):] {
		takes := c.assignTakes
		if _, ok := a.(AttachENI); ok {
			c.attaches++
			takes = c.attachTakes
		} else {
			c.assigns++
		}
		c.due = append(c.due, c.now.Add(takes))
	}
	flying := 0
	for _, a := range c.flying {
		if _, ok := a.(AttachENI); ok {
			flying++
		}
	}
	c.mostNew = max(c.mostNew, flying)
}

// pass moves the clock; due operations end on the way.
func (c *clocked) pass(d time.Duration) {
	c.t.Helper()
	end := c.now.Add(d)
	for len(c.due) > 0 {
		i := slices.Index(c.due, slices.MinFunc(c.due, time.Time.Compare))
		if c.due[i].After(end) {
			break
		}
		c.now = c.due[i]
		c.due = slices.Delete(c.due, i, i+1)
		c.land(i, true)
		c.retry()
		c.wake()
	}
	c.now = end
}

// arrive starts n pods, a few milliseconds apart; each wakes the planner.
func (c *clocked) arrive(n int) {
	c.t.Helper()
	for range n {
		c.pass(arrivalEvery)
		if at(c.s.Expected, 0) > 0 {
			c.s.Expected[0]--
		}
		c.add()
		c.wake()
	}
}

// serve lets time pass until at most this many pods wait.
func (c *clocked) serve(waiting int) {
	c.t.Helper()
	deadline := c.now.Add(time.Minute)
	for c.s.Waiting[0] > waiting {
		if c.now.After(deadline) {
			c.t.Fatalf("%d pods still wait: %s in flight", c.s.Waiting[0], text(c.flying))
		}
		c.pass(arrivalEvery)
	}
}

// rest ends all operations, then checks that nothing happens for an hour.
func (sh *shell) rest() {
	sh.t.Helper()
	released := ""
	for range 100 {
		for len(sh.flying) > 0 {
			sh.land(0, true)
		}
		sh.retry()
		sh.wake()
		for _, a := range sh.flying {
			switch a.(type) {
			case AttachENI, AssignAddresses, AssignPrefixes:
				if released != "" {
					sh.t.Fatalf("%v after %s", a, released)
				}
			default:
				released = fmt.Sprint(a)
			}
		}
		sh.now = sh.now.Add(5 * time.Second)
	}
	for i := range 100 {
		if sh.now = sh.now.Add(5 * time.Second); i > 40 {
			sh.now = sh.now.Add(55 * time.Second)
		}
		if plan := Plan(sh.snapshot(), sh.p, sh.now); len(plan) > 0 || len(sh.flying) > 0 {
			sh.t.Fatalf("the pool is not at rest: %s, in flight %s", text(plan), text(sh.flying))
		}
	}
}

// shape lists the CIDRs per ENI in device order: "29 20 2".
func (sh *shell) shape() string {
	var words []string
	for _, e := range sh.book.Snapshot().ENIs {
		words = append(words, fmt.Sprint(len(e.CIDRs)))
	}
	return strings.Join(words, " ")
}

// Pods that arrive faster than EC2 answers fill the ENIs in flight before another one is
// requested.
func TestPlan_ArrivalsOutrunEC2(t *testing.T) {
	t.Parallel()
	pd := func(p *Policy) { p.PrefixDelegation = true }
	rows := []struct {
		name   string
		limits Limits
		policy Policy
		pods   int
		shape  string // at rest
		calls  int    // most assigns
		atOnce int    // the most attaches in flight if all come at once
	}{
		{"W=1", m5x4large, ip(1, 0), 60, "29 29 3", 12, 2},
		{"W=5 M=10", m5x4large, ip(5, 10), 60, "29 29 7", 12, 2},
		{"M=10 alone", m5x4large, ip(0, 10), 60, "29 29 3", 12, 2},
		{"default", m5x4large, e(1), 60, "29 29 29 29", 1, 3},
		{"150 pods", m5x4large, ip(1, 0), 150, "29 29 29 29 29 6", 24, 5},
		{"prefixes, W=1", t3small, ip(1, 0).with(pd), 100, "3 3 1", 12, 2},
		{"prefixes, P=1", t3small, prefix(1, 0, 0, 0), 100, "3 3 2", 12, 2},
	}
	for _, row := range rows {
		crowds := []struct {
			name string
			run  func(*clocked)
		}{
			{"all at once", func(c *clocked) {
				c.arrive(row.pods)
				if c.mostNew != row.atOnce {
					c.t.Errorf("%d attaches side by side, want %d", c.mostNew, row.atOnce)
				}
			}},
			{"20 at a time", func(c *clocked) {
				for left := row.pods; left > 0; left -= 20 {
					c.arrive(min(20, left))
					c.serve(0)
				}
			}},
			{"20 in flight", func(c *clocked) {
				for range row.pods {
					c.serve(19)
					c.arrive(1)
				}
			}},
			{"20 every two seconds", func(c *clocked) {
				for left := row.pods; left > 0; left -= 20 {
					c.arrive(min(20, left))
					c.pass(2 * time.Second)
				}
			}},
		}
		for _, crowd := range crowds {
			t.Run(row.name+", "+crowd.name, func(t *testing.T) {
				t.Parallel()
				c := newClocked(t, row.limits, row.policy)
				c.wake()
				c.pass(time.Minute)
				crowd.run(c)
				c.serve(0)
				c.pass(time.Minute)
				if got := c.shape(); got != row.shape {
					t.Errorf("shape %q, want %q", got, row.shape)
				}
				if c.attaches != strings.Count(row.shape, " ") || c.assigns > row.calls {
					t.Errorf("%d attaches and %d assigns for %q", c.attaches, c.assigns, row.shape)
				}
				c.rest()
				if got := c.shape(); got != row.shape {
					t.Errorf("shape %q after a while, want %q", got, row.shape)
				}
			})
		}
	}
}

// crowd is a shell whose node has room for all pods of a test.
type crowd struct {
	*shell
	arrived  int
	foreseen int // the most pods ever predicted to follow
}

func newCrowd(t *testing.T, d dice) *crowd {
	p := Policy{PrefixDelegation: d.one(2), CustomNetworking: d.one(4), WarmENI: d(3), WarmPrefix: d(3)}
	if d.one(2) {
		p.WarmIP = d(12)
	}
	if d.one(2) {
		p.MinIP = d(30)
	}
	sh := &shell{t: t, d: d, now: epoch, p: timers(p)}
	sh.book = ipam.New(ipam.Options{Cooldown: sh.p.Cooldown})
	sh.s.Limits = Limits{IPv4PerENI: 2 + d(10), ENIsByCard: []int{maxDevices}}
	sh.s.Waiting = []int{0}
	if d.one(2) {
		sh.s.Expected = []int{0}
	}
	sh.attach(ipam.ENI{Primary: true, Excluded: p.CustomNetworking}, 0, false)
	return &crowd{shell: sh}
}

// justified returns the number of ENIs for all pods that ever came or were expected, and for
// the warm target. Pods that the API server reports as expected all come, or stay expected;
// without it the prediction must not exceed the number of pods that once waited.
func (c *crowd) justified() int {
	p, per := c.p, c.s.Limits.IPv4PerENI-1
	unit, warm := 1, p.WarmENI*per
	if p.PrefixDelegation {
		unit, warm = prefixSize, p.WarmPrefix*prefixSize
	}
	minimum := 0
	if p.WarmIP > 0 || p.MinIP > 0 {
		warm, minimum = p.WarmIP, p.MinIP
	}
	switch {
	case c.s.Expected != nil:
		c.foreseen = c.s.Expected[0]
	case !p.PrefixDelegation && p.WarmIP+p.MinIP == 0 && p.WarmENI > 0:
		c.foreseen = max(c.foreseen, c.s.Waiting[0])
	}
	slots := (max(c.arrived+c.foreseen+max(1, warm), minimum) + unit - 1) / unit
	enis := (slots + per - 1) / per
	if p.CustomNetworking {
		enis++ // the primary ENI
	}
	return enis
}

// check counts the ENIs that exist or are in flight, without those being detached.
func (c *crowd) check() {
	c.t.Helper()
	enis := 0
	for _, e := range c.book.Snapshot().ENIs {
		if !e.Held {
			enis++
		}
	}
	for _, a := range c.flying {
		if _, ok := a.(AttachENI); ok {
			enis++
		}
	}
	if most := c.justified(); enis > most {
		c.t.Fatalf("%d ENIs (%s; in flight: %s), %d are enough for the %d pods that came\n%+v\n%+v",
			enis, c.shape(), text(c.flying), most, c.arrived, c.s.Limits, c.p)
	}
	if err := c.book.Check(); err != nil {
		c.t.Fatal(err)
	}
}

// served ends the operations in flight and then those that follow: the second round is for
// the slots of ENIs that were busy or being attached. No pod waits for a third.
func (c *crowd) served() {
	c.t.Helper()
	for range 2 {
		for len(c.flying) > 0 {
			c.land(c.d(len(c.flying)), true)
		}
		c.retry()
		c.wake()
	}
	if n := c.s.Waiting[0]; n > 0 {
		c.t.Fatalf("%d pods still wait (%s)\n%+v\n%+v", n, c.shape(), c.s.Limits, c.p)
	}
}

func (c *crowd) event() {
	c.t.Helper()
	d := c.d
	switch d(7) {
	case 0: // several at once, planned together or one by one
		each := d.one(2)
		for range 1 + d(15) {
			if c.arrived++; c.justified() >= maxDevices {
				c.arrived--
				return
			}
			if c.s.Expected != nil && c.s.Expected[0] > 0 {
				c.s.Expected[0]--
			}
			if c.add(); each {
				c.wake()
				c.check()
			}
		}
	case 1:
		if len(c.pods) > 0 {
			i := d(len(c.pods))
			c.apply(ipam.Unassign{Sandbox: c.pods[i]})
			c.pods = slices.Delete(c.pods, i, i+1)
		}
	case 2: // a waiting ADD gives up
		c.s.Waiting[0] = max(0, c.s.Waiting[0]-1)
	case 3:
		c.now = c.now.Add(time.Duration(d(40)) * time.Second)
	case 4: // the scheduler binds pods
		if c.s.Expected != nil {
			if c.s.Expected[0] = min(20, c.s.Expected[0]+d(8)); c.justified() >= maxDevices {
				c.s.Expected[0] = 0
			}
		}
	default:
		if len(c.flying) > 0 {
			c.land(d(len(c.flying)), !d.one(8))
		}
	}
	c.retry()
}

// For any arrivals, operations in flight and order of their ends: there are no more ENIs
// than pods and targets need, every pod gets its address after the operations in flight and
// their successors, and the pool comes to rest.
func TestPlan_Arrivals(t *testing.T) {
	t.Parallel()
	shared := 0
	for seed := range uint64(400) {
		c := newCrowd(t, seeded(seed))
		for range 50 {
			c.event()
			c.wake()
			c.check()
			if c.s.Waiting[0] > 0 && len(c.flying) > 1 {
				shared++
			}
			if c.d.one(12) {
				c.served()
				c.check()
			}
		}
		c.served()
		c.check()
		c.rest()
		c.check()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if shared == 0 {
		t.Error("no pod ever waited while several operations were in flight")
	}
}
