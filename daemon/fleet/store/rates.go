package store

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// counters are what a daemon counts since it started.
type counters struct {
	started time.Time
	at      time.Time
	adds    int
	failed  int
	dels    int
	ec2     int
	ec2Errs int
}

// countersOf reads them; nil where the daemon tells none, or the sample has no time.
func countersOf(n introspect.NodeIPAM) *counters {
	s := n.Summary
	if s == nil || n.SampledAt == nil || s.ADDs == nil || s.DELs == nil || s.StartedAt == nil {
		return nil
	}
	c := &counters{started: *s.StartedAt, at: *n.SampledAt, adds: s.ADDs.Total, failed: s.ADDs.Failed, dels: s.DELs.Total}
	for _, calls := range s.EC2Calls {
		c.ec2 += calls.Calls
		c.ec2Errs += calls.Errors
	}
	return c
}

// since gives the rates from an earlier moment of the same run; nil when it was another
// run, when a counter went back, or when no time has passed.
func (c *counters) since(before *counters) *Rates {
	if c == nil || before == nil || !c.started.Equal(before.started) || !c.at.After(before.at) {
		return nil
	}
	over := c.at.Sub(before.at)
	diffs := [...]int{c.adds - before.adds, c.failed - before.failed, c.dels - before.dels, c.ec2 - before.ec2, c.ec2Errs - before.ec2Errs}
	var rates [len(diffs)]float64
	for i, d := range diffs {
		if d < 0 {
			return nil
		}
		rates[i] = float64(d) / over.Minutes()
	}
	return &Rates{Over: over, ADDs: rates[0], Failed: rates[1], DELs: rates[2], EC2: rates[3], EC2Error: rates[4]}
}

// sameMoment tells two readings between which the node's clock, which counts seconds,
// has not moved.
func (c *counters) sameMoment(before *counters) bool {
	return c != nil && before != nil && c.started.Equal(before.started) && c.at.Equal(before.at)
}
