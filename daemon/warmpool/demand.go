package warmpool

import (
	"time"

	"cnictl/daemon/ipam"
)

const (
	// rampWindow is how far back an ADD belongs to the current crowd. An attach takes EC2 some
	// seconds, and pods that arrived before it must still count after it.
	rampWindow = 10 * time.Second

	// rampMoment is how far back an ADD counts as served together with the current ones: ADDs
	// that wait for an operation are served at the moment when it ends.
	rampMoment = 100 * time.Millisecond

	// rampRatio is how many times the size of the crowd must have arrived within the window
	// before another crowd is expected.
	rampRatio = 2

	// mostExpected bounds an external number; no node runs that many pods.
	mostExpected = 1 << 16
)

// foresee is how many pods will ask for an address besides the waiting ones: those that the
// API server has bound to the node or, while that is unknown, as many as arrive together in a
// ramp.
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

// ramp is how many pods arrive together in a queue for which the reserve is too small; 0 if
// there is none. The container runtime works on a few sandboxes at a time and begins the next
// as soon as one is served. So a queue shows when more pods arrived in the last seconds than
// are arriving now; a crowd that arrives all at once waits together.
//
// With a reserve of ENIs only waiting pods count, since each mistake costs an ENI. A reserve of
// prefixes is filled by one call after another: the pods that a call has just served would find
// just as little when the next call ends, so they count, too. A target of single addresses, or
// of none, does not ask for a ramp.
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

// arrivals counts the pods of a CIDR that arrived within the window, and within the moment.
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

// unserved is how many of the waiting or expected pods have neither a free address nor one in
// flight; if negative, that many addresses are left over.
func (po *pool) unserved() int { return po.waiting + po.expected - po.free() - po.pending }

// served returns which of those pods growth is for: waiting pods come first.
func (po *pool) served() Reason {
	if po.waiting > po.free()+po.pending {
		return WaitingPods
	}
	return ExpectedPods
}
