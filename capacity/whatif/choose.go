package whatif

import "slices"

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

// CallBound bounds the requests per hour of all nodes under the goal [Balanced].
type CallBound struct {
	Share float64 // 12 for each node
	Most  float64 // the same, or what today's settings send if that is more
}

// BoundCalls returns the bound for a number of nodes.
func BoundCalls(today Result, nodes int) CallBound {
	share := float64(callsPerNode * nodes)
	return CallBound{share, max(share, today.PerHour(today.Calls.Requests()))}
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

// leastSpread is the least length of the axis of addresses in [Knee], relative to the
// addresses held: otherwise two nearly equal points would be as far apart as the best and
// the worst.
const leastSpread = 0.1

// Knee returns the index of the knee of a front that is not empty. Points with more
// requests per hour than the bound's most do not count; if all have more, it is the one with
// the fewest.
//
// A chord runs from the fewest addresses with the bound's share of requests to the most
// addresses with no request. With addresses and requests scaled so that it goes from (0, 1)
// to (1, 0), the knee is the point farthest below it: the one with the least sum of both. Of
// equally far ones it is that with fewer requests. No point of the front is better in both,
// so none beats the knee.
func Knee(front []Point, bound CallBound) int {
	last := len(front) - 1
	from := slices.IndexFunc(front, func(p Point) bool { return p.perHour() <= bound.Most })
	if from < 0 {
		return last
	}
	least, most := front[from].Result.Held.Avg, front[last].Result.Held.Avg
	sum := func(p Point) float64 {
		sum := p.perHour() / bound.Share
		if more := p.Result.Held.Avg - least; more > 0 {
			sum += more / max(most-least, least*leastSpread)
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

// Guarded returns the candidates that [Balanced] considers. WARM_IP_TARGET alone makes the
// pool follow every pod with a request; the VPC CNI's documentation (eni-and-ip-target.md)
// limits it to small clusters and those with very low pod churn, and advises a
// MINIMUM_IP_TARGET slightly higher than the expected number of pods. So if pods come or
// go, WARM_IP_TARGET needs a MINIMUM_IP_TARGET above what the node with the fewest pods holds
// without it. Otherwise all minima up to that are alike, and the highest stays.
func Guarded(nodes []Node, load Load, candidates []Settings) (out []Settings) {
	churn := len(load.Steps) > 0
	alike := map[int]int{} // by WARM_IP_TARGET: the index in out of the highest minimum that changes nothing
	for i, c := range candidates {
		switch {
		case c.WarmIP == 0:
		case c.MinimumIP == 0:
			continue
		case !idle(With(nodes, c), nil):
		case churn:
			continue
		case i > 0: // today's stays as it is
			if at, ok := alike[c.WarmIP]; ok {
				out[at] = c
				continue
			}
			alike[c.WarmIP] = len(out)
		}
		out = append(out, c)
	}
	return out
}
