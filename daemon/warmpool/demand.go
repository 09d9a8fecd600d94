package warmpool

import (
	"time"

	"cnictl/daemon/ipam"
)

const (
	// rampWindow is how far back an ADD belongs to the crowd that waits now. An attach
	// takes EC2 some seconds, and those who came before it must still count after it.
	rampWindow = 10 * time.Second

	// rampRatio is how many pods must have come within the window for each one that
	// waits before as many again are thought to follow.
	rampRatio = 2

	// mostExpected bounds a number that comes from outside; no node runs that many pods.
	mostExpected = 1 << 16
)

// foresee is how many pods will ask for an address beside those that wait: those that
// the API server has bound to the node or, while that is not known, as many again as
// wait in a ramp. Who wants addresses or prefixes in reserve gets them by one call, so
// only for whole ENIs, which take EC2 seconds, is it worth while to guess.
func (po *pool) foresee(s *Snapshot, p *Policy, now time.Time) int {
	n := 0
	switch {
	case s.Expected != nil:
		n = min(max(0, at(s.Expected, po.card)), mostExpected)
	case po.waiting > 0 && !frozen(s, p) && targetsOf(po, p).spareENIs() && po.ramps(now):
		n = po.waiting
	}
	if p.MaxPods > 0 && n > 0 {
		n = min(n, max(0, p.MaxPods-po.pods()-po.waiting))
	}
	return n
}

// ramps reports whether the pods that wait are the head of a queue. The container
// runtime works on some sandboxes at a time and begins the next as soon as one is
// served, so a queue shows itself in that many more have come in the last seconds than
// wait now; of a crowd that comes at once all wait together.
func (po *pool) ramps(now time.Time) bool {
	since, missing := now.Add(-rampWindow), rampRatio*po.waiting
	for i := range po.enis {
		for j := range po.enis[i].CIDRs {
			if missing -= assignedSince(&po.enis[i].CIDRs[j], since); missing <= 0 {
				return true
			}
		}
	}
	return false
}

func assignedSince(c *ipam.CIDRState, since time.Time) int {
	n := 0
	for i := range c.Records {
		if r := &c.Records[i]; r.AssignedAt.After(since) && r.Assigned() {
			n++
		}
	}
	return n
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
