// Package backoff holds the clocks that keep the daemon from asking for something
// that was just refused. A clock is a value: time and chance are arguments.
package backoff

import (
	"time"

	"cnictl/daemon/api/cause"
)

// Steps of the clocks. EC2 refills a throttled action at 5 tokens a second per
// account, so many nodes must spread out over tens of seconds; an exhausted subnet
// changes when pods or ENIs go, which is a matter of seconds to minutes.
const (
	ThrottleFirst, ThrottleMost   = 500 * time.Millisecond, 30 * time.Second
	ExhaustedFirst, ExhaustedMost = 2 * time.Second, 2 * time.Minute
)

// Chance returns a number in [0, n); n is positive.
type Chance func(n time.Duration) time.Duration

// Clock is one exponential back-off with jitter. The zero value does not run.
type Clock struct {
	Until time.Time  // nothing is asked for before
	Cause cause.Code // of the last failure

	step   time.Duration
	failed time.Time // when it was last set
}

// Fail sets the clock for an attempt that began at started. Attempts that ran side by
// side and fail together count as one: only a new attempt doubles the step.
func (c *Clock) Fail(started, now time.Time, why cause.Code, first, most time.Duration, chance Chance) {
	c.Cause = why
	if started.Before(c.failed) {
		return
	}
	c.failed = now
	c.step = min(max(2*c.step, first), most)
	// Between half the step and the whole: no two nodes in step, never at once.
	c.Until = now.Add(c.step/2 + chance(c.step/2+1))
}

// Succeed ends the back-off, unless the attempt that succeeded began before the last
// failure: then it says nothing about what holds now.
func (c *Clock) Succeed(started time.Time) {
	if c != nil && !started.Before(c.failed) {
		*c = Clock{}
	}
}

// Running reports that the clock holds something back now.
func (c Clock) Running(now time.Time) bool { return c.Until.After(now) }
