package ipamd

import (
	"errors"
	"math/rand/v2"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
)

// Steps of the back-off clocks. EC2 refills a throttled action at 5 tokens a second
// per account, so many nodes must spread out over tens of seconds; an exhausted
// subnet changes when pods or ENIs go, which is a matter of seconds to minutes.
const (
	throttleFirst, throttleMost   = 500 * time.Millisecond, 30 * time.Second
	exhaustedFirst, exhaustedMost = 2 * time.Second, 2 * time.Minute
)

// clock is one exponential back-off with jitter.
type clock struct {
	step   time.Duration
	until  time.Time
	failed time.Time  // when it was last set
	cause  cause.Code // of the last failure
}

// fail sets the clock for an attempt that began at started. Attempts that ran side
// by side and fail together count as one: only a new attempt doubles the step.
func (c *clock) fail(started, now time.Time, why cause.Code, first, most time.Duration) {
	c.cause = why
	if started.Before(c.failed) {
		return
	}
	c.failed = now
	c.step = min(max(2*c.step, first), most)
	// Between half the step and the whole: no two nodes in step, never at once.
	c.until = now.Add(c.step/2 + rand.N(c.step/2+1))
}

// succeed ends the back-off, unless the attempt that succeeded began before the
// last failure: then it says nothing about what holds now.
func (c *clock) succeed(started time.Time) {
	if c != nil && !started.Before(c.failed) {
		*c = clock{}
	}
}

// backoffs are all clocks of the node: one per thing that can be short.
type backoffs struct {
	attach         clock // creating and attaching ENIs (throttling, limits)
	release        clock // unassigning and detaching
	subnet         map[string]*clock
	subnetPrefixes map[string]*clock
	eni            map[ipam.ENIID]*clock
}

func newBackoffs() backoffs {
	return backoffs{
		subnet: make(map[string]*clock), subnetPrefixes: make(map[string]*clock), eni: make(map[ipam.ENIID]*clock),
	}
}

func of[K comparable](m map[K]*clock, key K) *clock {
	c, ok := m[key]
	if !ok {
		c = &clock{}
		m[key] = c
	}
	return c
}

// enis lists the ENIs' clocks that still run, and why.
func (b backoffs) enis(now time.Time) (map[ipam.ENIID]time.Time, map[ipam.ENIID]cause.Code) {
	until, why := make(map[ipam.ENIID]time.Time, len(b.eni)), make(map[ipam.ENIID]cause.Code, len(b.eni))
	for id, c := range b.eni {
		if c.until.After(now) {
			until[id], why[id] = c.until, c.cause
		}
	}
	return until, why
}

func until[K comparable](m map[K]*clock, key K) time.Time {
	if c, ok := m[key]; ok {
		return c.until
	}
	return time.Time{}
}

// gave notes that EC2 gave addresses of a subnet.
func (b backoffs) gave(op *operation) {
	b.subnet[op.subnet].succeed(op.started)
	if op.pending.Prefixes > 0 {
		b.subnetPrefixes[op.subnet].succeed(op.started)
	}
}

// causeOf says why an operation failed, whichever side failed it.
func causeOf(err error) cause.Code {
	var (
		missing *hostnet.LinkError
		host    *hostError
	)
	switch {
	case errors.As(err, &missing):
		return cause.ENILinkMissing
	case errors.As(err, &host):
		return cause.Internal
	}
	return vpcapi.Cause(err)
}

// hostError is a failure of this host and not of EC2.
type hostError struct{ err error }

func (e *hostError) Error() string { return e.err.Error() }
func (e *hostError) Unwrap() error { return e.err }
