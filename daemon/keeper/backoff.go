package keeper

import (
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// The clocks keep the daemon from repeating a request that was just refused. A clock is a
// value: time and jitter are arguments.

// Steps of the clocks. EC2 refills a throttled action at 5 tokens a second per account, so
// many nodes must spread out over tens of seconds. An exhausted subnet recovers when pods or
// ENIs go, within seconds to minutes.
const (
	ThrottleFirst, ThrottleMost   = 500 * time.Millisecond, 30 * time.Second
	ExhaustedFirst, ExhaustedMost = 2 * time.Second, 2 * time.Minute
)

// Jitter returns a number in [0, n); n is positive.
type Jitter func(n time.Duration) time.Duration

// Clock is one exponential back-off with jitter. The zero value does not run.
type Clock struct {
	Until time.Time  // no request before this time
	Cause cause.Code // of the last failure

	step   time.Duration
	failed time.Time // when it was last set
}

// Fail sets the clock for an attempt that began at started. Parallel attempts that fail
// together count as one: only a new attempt doubles the step.
func (c *Clock) Fail(started, now time.Time, why cause.Code, first, most time.Duration, jitter Jitter) {
	c.Cause = why
	if started.Before(c.failed) {
		return
	}
	c.failed = now
	c.step = min(max(2*c.step, first), most)
	// Between half the step and all of it, so that nodes drift apart.
	c.Until = now.Add(c.step/2 + jitter(c.step/2+1))
}

// Succeed ends the back-off, unless the successful attempt began before the last failure:
// then it does not show the current state.
func (c *Clock) Succeed(started time.Time) {
	if c != nil && !started.Before(c.failed) {
		*c = Clock{}
	}
}

// Running reports whether the clock holds requests back now.
func (c Clock) Running(now time.Time) bool { return c.Until.After(now) }

// backoffs are all clocks of the node, one per resource that can run short.
type backoffs struct {
	attach         Clock // creating and attaching ENIs (throttling, limits)
	release        Clock // unassigning and detaching
	subnet         map[string]*Clock
	subnetPrefixes map[string]*Clock
	eni            map[ipam.ENIID]*Clock
}

func newBackoffs() backoffs {
	return backoffs{
		subnet: make(map[string]*Clock), subnetPrefixes: make(map[string]*Clock), eni: make(map[ipam.ENIID]*Clock),
	}
}

func of[K comparable](m map[K]*Clock, key K) *Clock {
	c, ok := m[key]
	if !ok {
		c = &Clock{}
		m[key] = c
	}
	return c
}

// enis lists the ENIs' running clocks and their causes; nil if none runs.
func (b backoffs) enis(now time.Time) (until map[ipam.ENIID]time.Time, why map[ipam.ENIID]cause.Code) {
	for id, c := range b.eni {
		if !c.Running(now) {
			continue
		}
		if until == nil {
			until, why = make(map[ipam.ENIID]time.Time), make(map[ipam.ENIID]cause.Code)
		}
		until[id], why[id] = c.Until, c.Cause
	}
	return until, why
}

func until[K comparable](m map[K]*Clock, key K) time.Time {
	if c, ok := m[key]; ok {
		return c.Until
	}
	return time.Time{}
}

// gave records that a subnet had addresses to give.
func (k *Keeper) gave(op *Operation, now time.Time) {
	k.free("subnet", op.SubnetID, k.backoff.subnet[op.SubnetID], op, now)
	if op.Prefixes > 0 {
		k.free("subnet-prefix", op.SubnetID, k.backoff.subnetPrefixes[op.SubnetID], op, now)
	}
}

// hold sets a clock after a failure. The steps are short after throttling and for releases.
func (k *Keeper) hold(scope, id string, c *Clock, op *Operation, now time.Time, why cause.Code) {
	first, most := ExhaustedFirst, ExhaustedMost
	if why == cause.EC2Throttled || scope == "release" {
		first, most = ThrottleFirst, ThrottleMost
	}
	before := c.Until
	c.Fail(op.Started, now, why, first, most, k.jitter)
	if c.Until != before {
		k.record(now, BackoffStarted{Backoff: Backoff{scope, id, c.Until, c.Cause}})
	}
}

// free ends the clock of an action that succeeded.
func (k *Keeper) free(scope, id string, c *Clock, op *Operation, now time.Time) {
	if c == nil || c.Until.IsZero() {
		return
	}
	before := *c
	if c.Succeed(op.Started); c.Until.IsZero() {
		k.record(now, BackoffEnded{Backoff: Backoff{scope, id, before.Until, before.Cause}})
	}
}

// throttleCooldown is how long after a throttled request the pool does nothing ahead of
// demand, and how far nodes that were throttled together drift apart before they resume.
const throttleCooldown = 5 * time.Minute

// Throttled reports that EC2 refused a request because the account made too many, even if a
// retry was accepted.
type Throttled struct{}

func (Throttled) handle(k *Keeper, now time.Time) {
	if k.throttledUntil.Sub(now) < throttleCooldown {
		k.throttledUntil = now.Add(throttleCooldown + k.jitter(throttleCooldown))
	}
}
