package whatif

import (
	"cmp"
	"slices"
	"time"
)

// Arrivals are steps in which pods come at random, on average so many a minute, and live
// for a random time: intervals and lives are exponential. Each goes from any node, which for
// such lives is the same as remembering where it came to.
func Arrivals(perMinute float64, life, length time.Duration, seed uint64) []Step {
	if perMinute <= 0 || length <= 0 {
		return nil
	}
	rnd := stream(seed, 3)
	var out []Step
	for at := time.Duration(0); ; {
		at += rnd.exponential(time.Duration(float64(time.Minute) / perMinute))
		if at >= length || at < 0 {
			break
		}
		out = append(out, Step{At: at, Node: AnyNode, Pods: 1})
		if end := at + rnd.exponential(life); life > 0 && end < length {
			out = append(out, Step{At: end, Node: AnyNode, Pods: -1})
		}
	}
	SortSteps(out)
	return out
}

// SortSteps orders steps by time; those of one moment stay in their order.
func SortSteps(steps []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
}

// Burst is a number of pods that come to a node, evenly over a time.
func Burst(node, pods int, over time.Duration) []Step {
	out := make([]Step, 0, pods)
	for i := range pods {
		out = append(out, Step{At: over * time.Duration(i) / time.Duration(max(1, pods)), Node: node, Pods: 1})
	}
	return out
}

// replaced is how long after a pod the one that replaces it comes.
const replaced = 2 * time.Second

// Replacements are steps in which pods are replaced at random, on average so many a minute:
// any one goes, and its successor comes.
func Replacements(perMinute float64, length time.Duration, seed uint64) (out []Step) {
	for _, s := range Arrivals(perMinute, 0, length, seed) {
		out = append(out, Step{At: s.At, Node: AnyNode, Pods: -1}, Step{At: s.At + replaced, Node: AnyNode, Pods: 1})
	}
	SortSteps(out)
	return out
}
