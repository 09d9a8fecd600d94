package vpcrc

import "time"

// deleteRounds is how often a branch ENI is tried to be deleted before it is forgotten
// and its VLAN id lost.
const deleteRounds = 3

// parked is a branch ENI that waits for its end.
type parked struct {
	branch
	since  time.Time // zero: does not cool down
	rounds int       // that failed
}

// queue holds a node's branch ENIs that wait for their end. It counts against the
// type's limit.
type queue []parked

// park puts what an ended pod leaves at the end, to cool down from now on.
func (q *queue) park(now time.Time, branches []branch) {
	for _, b := range branches {
		*q = append(*q, parked{branch: b, since: now})
	}
}

// discard puts what no pod ever used at the front, where it does not cool down.
func (q *queue) discard(branches []branch) {
	var front queue
	for _, b := range branches {
		front = append(front, parked{branch: b})
	}
	*q = append(front, *q...)
}

// next takes the first entry if it has cooled down. One that has not stops all behind it.
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
