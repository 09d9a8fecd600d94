package keeper

import (
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// The timers keep the daemon from repeating a request that was just refused. A timer is a
// value: time and jitter are arguments.

// Steps of the timers. EC2 refills a throttled action at 5 tokens a second per account, so
// many nodes must spread out over tens of seconds. An exhausted subnet recovers when pods or
// ENIs go, within seconds to minutes.
const (
	ThrottleFirst, ThrottleMax   = 500 * time.Millisecond, 30 * time.Second
	ExhaustedFirst, ExhaustedMax = 2 * time.Second, 2 * time.Minute
)

// Jitter returns a number in [0, n); n is positive.
type Jitter func(n time.Duration) time.Duration

// BackoffTimer is one exponential back-off with jitter. The zero value does not run.
type BackoffTimer struct {
	Until time.Time  // no request before this time
	Cause cause.Code // of the last failure

	step   time.Duration
	failed time.Time // when it was last set
}

// Fail sets the timer for an attempt that began at started. Parallel attempts that fail
// together count as one: only a new attempt doubles the step.
func (c *BackoffTimer) Fail(started, now time.Time, why cause.Code, first, most time.Duration, jitter Jitter) {
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
func (c *BackoffTimer) Succeed(started time.Time) {
	if c != nil && !started.Before(c.failed) {
		*c = BackoffTimer{}
	}
}

// Running reports whether the timer holds requests back now.
func (c BackoffTimer) Running(now time.Time) bool { return c.Until.After(now) }

// backoffs are all timers of the node, one per resource that can run short.
type backoffs struct {
	attach         BackoffTimer // creating and attaching ENIs (throttling, limits)
	release        BackoffTimer // unassigning and detaching
	subnet         map[string]*BackoffTimer
	subnetPrefixes map[string]*BackoffTimer
	eni            map[ipam.ENIID]*BackoffTimer
}

func newBackoffs() backoffs {
	return backoffs{
		subnet: make(map[string]*BackoffTimer), subnetPrefixes: make(map[string]*BackoffTimer), eni: make(map[ipam.ENIID]*BackoffTimer),
	}
}

func of[K comparable](m map[K]*BackoffTimer, key K) *BackoffTimer {
	c, ok := m[key]
	if !ok {
		c = &BackoffTimer{}
		m[key] = c
	}
	return c
}

// enis lists the ENIs' running timers and their causes; nil if none runs.
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

func until[K comparable](m map[K]*BackoffTimer, key K) time.Time {
	if c, ok := m[key]; ok {
		return c.Until
	}
	return time.Time{}
}

// subnetSucceeded records that a subnet had addresses to give.
func (k *Keeper) subnetSucceeded(op *Operation, now time.Time) {
	k.endBackoff("subnet", op.SubnetID, k.backoff.subnet[op.SubnetID], op, now)
	if op.Prefixes > 0 {
		k.endBackoff("subnet-prefix", op.SubnetID, k.backoff.subnetPrefixes[op.SubnetID], op, now)
	}
}

// startBackoff sets a timer after a failure. The steps are short after throttling and for releases.
func (k *Keeper) startBackoff(scope, id string, c *BackoffTimer, op *Operation, now time.Time, why cause.Code) {
	first, most := ExhaustedFirst, ExhaustedMax
	if why == cause.EC2Throttled || scope == "release" {
		first, most = ThrottleFirst, ThrottleMax
	}
	before := c.Until
	c.Fail(op.Started, now, why, first, most, k.jitter)
	if c.Until != before {
		k.record(now, BackoffStarted{Backoff: Backoff{scope, id, c.Until, c.Cause}})
	}
}

// endBackoff ends the timer of an action that succeeded.
func (k *Keeper) endBackoff(scope, id string, c *BackoffTimer, op *Operation, now time.Time) {
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
