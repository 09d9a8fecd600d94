package warmpool

import (
	"time"

	"cnictl/daemon/ipam"
)

const (
	// rampWindow is how far back an ADD belongs to the crowd of now. An attach takes EC2
	// some seconds, and those who came before it must still count after it.
	rampWindow = 10 * time.Second

	// rampMoment is how far back an ADD was served together with those of now: what
	// waits for an operation is served in the moment in which it ends.
	rampMoment = 100 * time.Millisecond

	// rampRatio is how many times a crowd must have come within the window before it is
	// thought to come once more.
	rampRatio = 2

	// mostExpected bounds a number that comes from outside; no node runs that many pods.
	mostExpected = 1 << 16
)

// foresee is how many pods will ask for an address beside those that wait: those that
// the API server has bound to the node or, while that is not known, as many as come at
// a time in a ramp.
func (po *pool) foresee(s *Snapshot, p *Policy, now time.Time) int {
	n := 0
	switch {
	case s.Expected != nil:
		n = min(max(0, at(s.Expected, po.card)), mostExpected)
	case !frozen(s, p):
		n = po.ramp(targetsOf(po, p), now)
	}
	if p.MaxPods > 0 && n > 0 {
		n = min(n, max(0, p.MaxPods-po.pods()-po.waiting))
	}
	return n
}

// ramp is how many pods come at a time in a queue for which the reserve is too small; 0:
// there is none. The container runtime works on some sandboxes at a time and begins the
// next as soon as one is served, so a queue shows itself in that many more have come in
// the last seconds than come now; of a crowd that comes at once all wait together.
//
// With a reserve of ENIs those that wait count, for each mistake costs an ENI. A reserve
// of prefixes is filled up one call after the other: what a call has just served would
// find as little when the next one ends, so it counts too. Who wants single addresses,
// or nothing, in reserve wants none too many.
func (po *pool) ramp(t targets, now time.Time) int {
	if t.ips || t.spare == 0 || po.waiting == 0 && !t.prefixes {
		return 0
	}
	crowd, recent := po.waiting, 0
	since, just := now.Add(-rampWindow), now.Add(-rampMoment)
	for i := range po.enis {
		for j := range po.enis[i].CIDRs {
			window, moment := arrivals(&po.enis[i].CIDRs[j], since, just)
			recent += window
			if t.prefixes {
				crowd += moment
			}
		}
	}
	if recent < rampRatio*crowd || t.prefixes && crowd <= t.spare*prefixSize {
		return 0
	}
	return crowd
}

// arrivals counts the pods of a CIDR that came within the window and in this moment.
func arrivals(c *ipam.CIDRState, since, just time.Time) (window, moment int) {
	if c.Assigned == 0 {
		return 0, 0
	}
	for i := range c.Records {
		r := &c.Records[i]
		if !r.AssignedAt.After(since) || !r.Assigned() {
			continue
		}
		window++
		if r.AssignedAt.After(just) {
			moment++
		}
	}
	return window, moment
}

// pods counts the pods that have an address of the card.
func (po *pool) pods() int {
	n := 0
	for i := range po.enis {
		n += po.enis[i].assigned
	}
	return n
}

// unserved is how many of the pods that wait or are expected neither a free address nor
// one in flight is for; negative: so many are left over.
func (po *pool) unserved() int { return po.waiting + po.expected - po.free() - po.pending }

// served says which of those pods growth is for: the ones that wait come first.
func (po *pool) served() Reason {
	if po.waiting > po.free()+po.pending {
		return WaitingPods
	}
	return ExpectedPods
}
