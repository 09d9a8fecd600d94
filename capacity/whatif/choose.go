package whatif

import (
	"slices"
	"time"
)

// Goal is what targets are chosen for.
type Goal string

// Goals, the default first.
const (
	Balanced        Goal = "balanced"         // the knee of the curve, see [Knee]
	FewestAddresses Goal = "fewest-addresses" // to hold
	FewestCalls     Goal = "fewest-calls"     // to EC2
	ServedBurst     Goal = "burst"            // the fewest addresses that serve a burst
)

// Goals returns all goals.
func Goals() []Goal { return []Goal{Balanced, FewestAddresses, FewestCalls, ServedBurst} }

// callsPerNode are the requests to EC2 per hour that a node may send under the goal
// [Balanced]: one every 5 minutes. EC2 throttles all nodes of an account and region together.
const callsPerNode = 12

// CallBound bounds the requests per hour of each node under the goal [Balanced]. An empty one
// allows any number. A bound of their sum would let a single node spend the share of all.
type CallBound []float64

// BoundCalls returns the bound after a run with today's settings: what each node sends with
// them, but at least 12.
func BoundCalls(today *Run) (out CallBound) {
	result := today.Result()
	for _, n := range today.requests() {
		out = append(out, max(callsPerNode, result.PerHour(n)))
	}
	return out
}

// Sum is the bound of all nodes together.
func (b CallBound) Sum() (sum float64) {
	for _, n := range b {
		sum += n
	}
	return sum
}

// share are the requests per hour of all nodes that send callsPerNode.
func (b CallBound) share() float64 { return float64(callsPerNode * len(b)) }

// above returns the node that exceeds its bound the most, and its requests per hour.
func (b CallBound) above(requests []int, in time.Duration) (node int, perHour float64, above bool) {
	for i, most := range b {
		if rate := (Result{For: in}).PerHour(requests[i]); rate > most && (!above || rate-most > perHour-b[node]) {
			node, perHour, above = i, rate, true
		}
	}
	return node, perHour, above
}

// Above returns the node that exceeds its bound the most, and its requests per hour; false if
// none does.
func (p Point) Above(bound CallBound) (node int, perHour float64, above bool) {
	return bound.above(p.requests, p.Result.For)
}

func (p Point) perHour() float64 { return p.Result.PerHour(p.Result.Calls.Requests()) }

// Tie is the relative difference up to which [Choose] takes two outcomes as equal.
const Tie = 0.01

// Choose returns the index of the point of a front that serves a goal best; -1 if the front
// is empty. The bound is for [Balanced].
//
// Of the points that hold at most 1 % more addresses than the best one, and make at most
// 1 % more ADDs wait, that with the fewest requests is chosen.
func Choose(front []Point, goal Goal, bound CallBound) int {
	best := 0
	switch {
	case len(front) == 0:
		return -1
	case goal == Balanced:
		best = Knee(front, bound)
	case goal == FewestCalls:
		return len(front) - 1
	}
	alike := func(of, than float64) bool { return of <= than*(1+Tie) }
	for i := len(front) - 1; i > best; i-- { // the fewest requests first
		p, b := front[i].Result, front[best].Result
		if alike(p.Held.Avg, b.Held.Avg) && alike(float64(p.Waited), float64(b.Waited)) {
			return i
		}
	}
	return best
}

// leastSpread and leastPerNode are the least length of the axis of addresses in [Knee],
// relative to the addresses held and in addresses per node: otherwise two nearly equal points
// would be as far apart as the best and the worst. Relative to few addresses a single one is
// much, but it is not worth more than 6 requests per hour on the smallest pool either.
const (
	leastSpread  = 0.1
	leastPerNode = 2
)

// Knee returns the index of the knee of a front that is not empty. Points with which a node
// exceeds the bound do not count; if it is so with all, it is the one with the fewest requests.
//
// A chord runs from the fewest addresses with 12 requests per node and hour to the most
// addresses with no request. With addresses and requests scaled so that it goes from (0, 1)
// to (1, 0), the knee is the point farthest below it: the one with the least sum of both. Of
// equally far ones it is that with fewer requests. No point of the front is better in both,
// so none beats the knee.
func Knee(front []Point, bound CallBound) int {
	last := len(front) - 1
	from := slices.IndexFunc(front, func(p Point) bool { _, _, above := p.Above(bound); return !above })
	if from < 0 {
		return last
	}
	least, most := front[from].Result.Held.Avg, front[last].Result.Held.Avg
	spread := max(most-least, least*leastSpread, leastPerNode*float64(len(bound)))
	sum := func(p Point) float64 {
		sum := p.perHour() / bound.share()
		if more := p.Result.Held.Avg - least; more > 0 {
			sum += more / spread
		}
		return sum
	}
	knee := last
	for i := last - 1; i >= from; i-- {
		if sum(front[i]) < sum(front[knee])-rounding {
			knee = i
		}
	}
	return knee
}

// Guarded returns the candidates that [Balanced] considers, after a run with today's settings
// on the nodes, and whether it left out any because of churn. WARM_IP_TARGET alone makes the
// pool follow every pod with a request; the VPC CNI's documentation (eni-and-ip-target.md)
// limits it to small clusters and those with very low pod churn, and advises a
// MINIMUM_IP_TARGET slightly higher than the expected number of pods. So with WARM_IP_TARGET,
// each node with pods that come or go needs a MINIMUM_IP_TARGET above what it holds without
// it, both with its pods at the start and with those that it has on average. If there is no
// such node, all minima up to that are alike, and the highest stays.
func Guarded(today *Run, nodes []Node, candidates []Settings) (out []Settings, unguarded bool) {
	churning := today.churning()
	alike := map[int]int{} // by WARM_IP_TARGET: the index in out of the highest minimum that changes nothing
	for i, c := range candidates {
		switch with := With(nodes, c); {
		case c.WarmIP == 0:
		case len(churning) > 0:
			if follows(with, churning) {
				unguarded = true
				continue
			}
		case c.MinimumIP == 0:
			continue
		case idle(with, nil) && i > 0: // today's stays as it is
			if at, ok := alike[c.WarmIP]; ok {
				out[at] = c
				continue
			}
			alike[c.WarmIP] = len(out)
		}
		out = append(out, c)
	}
	return out, unguarded
}

// follows reports whether the pool of any of some nodes, given with their expected pods,
// follows its pods.
func follows(nodes []Node, expected map[int]int) bool {
	for i, pods := range expected {
		n := nodes[i]
		if n.Settings.idle(min(max(n.Pods, pods), n.Settings.Room())) {
			return true
		}
	}
	return false
}
