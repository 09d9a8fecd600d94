package keeper

import (
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/backoff"
	"cnictl/daemon/ipam"
)

// backoffs are all clocks of the node: one per thing that can be short.
type backoffs struct {
	attach         backoff.Clock // creating and attaching ENIs (throttling, limits)
	release        backoff.Clock // unassigning and detaching
	subnet         map[string]*backoff.Clock
	subnetPrefixes map[string]*backoff.Clock
	eni            map[ipam.ENIID]*backoff.Clock
}

func newBackoffs() backoffs {
	return backoffs{
		subnet: make(map[string]*backoff.Clock), subnetPrefixes: make(map[string]*backoff.Clock), eni: make(map[ipam.ENIID]*backoff.Clock),
	}
}

func of[K comparable](m map[K]*backoff.Clock, key K) *backoff.Clock {
	c, ok := m[key]
	if !ok {
		c = &backoff.Clock{}
		m[key] = c
	}
	return c
}

// enis lists the ENIs' clocks that still run, and why; nil: none does.
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

func until[K comparable](m map[K]*backoff.Clock, key K) time.Time {
	if c, ok := m[key]; ok {
		return c.Until
	}
	return time.Time{}
}

// gave notes that EC2 gave addresses of a subnet.
func (k *Keeper) gave(op *Operation, now time.Time) {
	k.free("subnet", op.Subnet, k.backoff.subnet[op.Subnet], op, now)
	if op.Pending.Prefixes > 0 {
		k.free("subnet-prefix", op.Subnet, k.backoff.subnetPrefixes[op.Subnet], op, now)
	}
}

// hold sets a clock after a failure. Throttling begins with a short step.
func (k *Keeper) hold(scope, id string, c *backoff.Clock, op *Operation, now time.Time, why cause.Code) {
	first, most := backoff.ExhaustedFirst, backoff.ExhaustedMost
	if why == cause.EC2Throttled || scope == "release" {
		first, most = backoff.ThrottleFirst, backoff.ThrottleMost
	}
	before := c.Until
	c.Fail(op.Started, now, why, first, most, k.chance)
	if c.Until != before {
		k.record(now, BackoffStarted{Backoff: Backoff{scope, id, c.Until, c.Cause}})
	}
}

// free ends the clock of something that worked.
func (k *Keeper) free(scope, id string, c *backoff.Clock, op *Operation, now time.Time) {
	if c == nil || c.Until.IsZero() {
		return
	}
	before := *c
	if c.Succeed(op.Started); c.Until.IsZero() {
		k.record(now, BackoffEnded{Backoff: Backoff{scope, id, before.Until, before.Cause}})
	}
}

// calm is how long after a throttled request the pool does nothing ahead of pods, and how
// far nodes that were throttled together drift apart before they all do so again.
const calm = 5 * time.Minute

// Throttled reports that EC2 refused a request for being one too many of this account,
// also if a repetition of it was taken.
type Throttled struct{}

func (Throttled) handle(k *Keeper, now time.Time) {
	if k.throttledUntil.Sub(now) < calm {
		k.throttledUntil = now.Add(calm + k.chance(calm))
	}
}
