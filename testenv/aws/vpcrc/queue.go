package vpcrc

import "time"

// deleteRounds is how often the deletion of a branch ENI is tried before the ENI is forgotten
// and its VLAN id lost.
const deleteRounds = 3

// parked is a branch ENI that waits for its deletion.
type parked struct {
	branch
	since  time.Time // zero: needs no cool-down
	rounds int       // failed ones
}

// queue holds a node's branch ENIs that wait for their deletion. It counts against the
// type's limit.
type queue []parked

// park appends the branches of an ended pod, to cool down from now on.
func (q *queue) park(now time.Time, branches []branch) {
	for _, b := range branches {
		*q = append(*q, parked{branch: b, since: now})
	}
}

// discard puts branches that no pod ever used at the front, where they need no cool-down.
func (q *queue) discard(branches []branch) {
	var front queue
	for _, b := range branches {
		front = append(front, parked{branch: b})
	}
	*q = append(front, *q...)
}

// next takes the first entry if it has cooled down. Otherwise it blocks all entries behind it.
func (q *queue) next(now time.Time, cooldown time.Duration) (parked, bool) {
	if len(*q) == 0 {
		return parked{}, false
	}
	p := (*q)[0]
	if !p.since.IsZero() && now.Sub(p.since) < cooldown {
		return parked{}, false
	}
	*q = (*q)[1:]
	return p, true
}

// failed puts an entry that could not be deleted back to the front, without a time
// stamp, or reports that it is forgotten.
func (q *queue) failed(p parked) (forgotten bool) {
	p.rounds++
	if p.rounds >= deleteRounds {
		return true
	}
	p.since = time.Time{}
	*q = append(queue{p}, *q...)
	return false
}
