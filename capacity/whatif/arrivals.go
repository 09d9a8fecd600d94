package whatif

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Arrivals returns steps in which pods arrive at random, perMinute on average, and live
// for a random time: intervals and lives are exponential. Each leaves from any node, which
// for such lives is equivalent to remembering where it arrived.
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

// SortSteps sorts steps by time; simultaneous ones keep their order.
func SortSteps(steps []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
}

// Burst returns steps in which pods arrive on a node, evenly over a time.
func Burst(node, pods int, over time.Duration) []Step {
	out := make([]Step, 0, pods)
	for i := range pods {
		out = append(out, Step{At: over * time.Duration(i) / time.Duration(max(1, pods)), Node: node, Pods: 1})
	}
	return out
}

// replaced is the delay between a pod's departure and the arrival of its replacement.
const replaced = 2 * time.Second

// Replacements returns steps in which pods are replaced at random, perMinute on average:
// any pod leaves, and its successor arrives.
func Replacements(perMinute float64, length time.Duration, seed uint64) (out []Step) {
	for _, s := range Arrivals(perMinute, 0, length, seed) {
		out = append(out, Step{At: s.At, Node: AnyNode, Pods: -1}, Step{At: s.At + replaced, Node: AnyNode, Pods: 1})
	}
	SortSteps(out)
	return out
}

// Seen is an observation of a node's pods.
type Seen struct {
	At   time.Duration // after the start
	Pods int           // with an address
	ADDs *int          // successful ones so far; nil if unknown
}

// Between returns a node's steps from one observation to the next, evenly spread: its ADDs
// tell how many pods arrived, and the rest of the difference how many left. Without the
// ADDs, or if their counter was reset, pods that arrived and left in between go unnoticed.
func Between(node int, from, to Seen) iter.Seq[Step] {
	more := to.Pods - from.Pods
	came := max(more, 0)
	if from.ADDs != nil && to.ADDs != nil {
		came = max(came, *to.ADDs-*from.ADDs)
	}
	went := came - more
	signs := []int{1, -1}
	if from.Pods > 0 { // only then does a full node have room for the next one
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
