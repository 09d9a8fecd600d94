package whatif

import (
	"cmp"
	"iter"
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
	rnd := Stream(seed, 3)
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

// Seen are the pods of a node at one time.
type Seen struct {
	At   time.Duration // after the start
	Pods int           // that have an address
	ADDs *int          // that succeeded so far; nil: not known
}

// Between are the steps of a node from one time to a later one, evenly spread: the pods that
// came by the number of its ADDs, those that went by what is missing then. Without the numbers,
// or when they began again, pods that came and went in between are not seen.
func Between(node int, from, to Seen) iter.Seq[Step] {
	more := to.Pods - from.Pods
	came := max(more, 0)
	if from.ADDs != nil && to.ADDs != nil {
		came = max(came, *to.ADDs-*from.ADDs)
	}
	went := came - more
	signs := []int{1, -1}
	if from.Pods > 0 { // a full node has room for the next one only then
		signs = []int{-1, 1}
	}
	count := max(came, went)
	return func(yield func(Step) bool) {
		for i := range count {
			at := from.At + time.Duration(float64(to.At-from.At)*float64(i+1)/float64(count))
			for _, sign := range signs {
				if (sign > 0 && i < came || sign < 0 && i < went) && !yield(Step{At: at, Node: node, Pods: sign}) {
					return
				}
			}
		}
	}
}
