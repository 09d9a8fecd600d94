package store

import (
	"math"
	"time"
)

// Spacing is the time between two points of a History: 90 of them are 15 minutes.
// Samples between are not kept, but for those that begin or end a gap.
const Spacing = 10 * time.Second

// grow is how many points a History is given room for at a time.
const grow = 16

// add appends a point where one is due. The array behind a History is shared with the
// ones before: nobody sees beyond his own length.
func (h History) add(p Point) History {
	if len(h) > 0 {
		last := h[len(h)-1]
		if !p.At.After(last.At) || slot(p.At) == slot(last.At) && p.Gap() == last.Gap() {
			return h
		}
	}
	if len(h) == cap(h) || len(h) >= HistoryLen {
		keep := h[max(0, len(h)-HistoryLen+1):]
		if len(h) < cap(h) && cap(keep) > len(keep) {
			return append(keep, p)
		}
		fresh := make(History, len(keep), len(keep)+grow)
		copy(fresh, keep)
		h = fresh
	}
	return append(h, p)
}

func slot(at time.Time) int64 { return at.Unix() / int64(Spacing/time.Second) }

// Series divides the time before now into as many steps and gives the value of each,
// the newest last: of its last point, else of the last one before when that is no gap
// and not older than three steps or a minute. What is not known is NaN.
func (h History) Series(now time.Time, span time.Duration, steps int, value func(Point) float64) []float64 {
	out := make([]float64, steps)
	if steps == 0 || span <= 0 {
		return out
	}
	step := span / time.Duration(steps)
	fresh := max(3*step, time.Minute)
	next := 0
	for i := range out {
		end := now.Add(-step * time.Duration(steps-1-i))
		for next < len(h) && !h[next].At.After(end) {
			next++
		}
		out[i] = math.NaN()
		if next == 0 {
			continue
		}
		if p := h[next-1]; !p.Gap() && end.Sub(p.At) <= fresh {
			out[i] = value(p)
		}
	}
	return out
}

// point is what a node is at a moment.
func point(n *Node, at time.Time) Point {
	p := Point{At: at, Assigned: small(n.Assigned), Cooling: small(n.Cooling), Free: small(n.Free), ENIs: small(n.ENIs), Waiting: -1}
	if w := n.Summary.WaitingADDs; w != nil {
		p.Waiting = small(*w)
	}
	return p
}

// small bounds a count: with IPv6 prefixes one does not fit.
func small(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) }
