package store

import (
	"math"
	"time"
)

// HistoryLen is how many points a History holds at most.
const HistoryLen = 90

// Spacing is the time between two points of a History: 90 of them are 15 minutes.
// Samples between are not kept, but for those that begin or end a gap.
const Spacing = 10 * time.Second

// Point is one moment of a node, in as little room as does: a fleet has half a million.
type Point struct {
	Unix      uint32 // the moment, in seconds
	Assigned  int32  // -1: nothing is known, see Gap
	Cooling   int32  // -1: not known
	Free      int32
	ENIs      int16 // -1: not known
	Waiting   int16 // ADDs that wait; -1: not known
	WarmIP    int16 // WARM_IP_TARGET then; -1: not known or not set
	MinimumIP int16 // MINIMUM_IP_TARGET then; -1: not known or not set
}

// History is the last points, oldest first. A moment in which the node could not be read
// is a point with Assigned -1: a gap, not a zero.
type History []Point

// At is the moment of the point, to the second; zero of a gap without one.
func (p Point) At() time.Time {
	if p.Unix == 0 {
		return time.Time{}
	}
	return time.Unix(int64(p.Unix), 0).UTC()
}

// Gap reports that nothing is known of the moment.
func (p Point) Gap() bool { return p.Assigned < 0 }

// gap is a moment without data.
func gap(at time.Time) Point {
	return Point{Unix: second(at), Assigned: -1, Cooling: -1, ENIs: -1, Waiting: -1, WarmIP: -1, MinimumIP: -1}
}

// point is what a node is at a moment.
func point(n *Node, at time.Time) Point {
	t := n.Summary.Targets
	p := Point{
		Unix: second(at), Assigned: small(n.Assigned), Cooling: -1, Free: small(n.Free),
		ENIs: smaller(n.ENIs), Waiting: smaller(n.Summary.WaitingADDs),
		WarmIP: smaller(t.WarmIP), MinimumIP: smaller(t.MinimumIP),
	}
	if n.Cooling != nil {
		p.Cooling = small(*n.Cooling)
	}
	return p
}

// Taken is how many addresses pods have or had a moment before, as far as it is known.
func (p Point) Taken() int { return int(p.Assigned + max(0, p.Cooling)) }

// small bounds a count: with IPv6 prefixes one does not fit.
func small(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) }

func smaller(v *int) int16 {
	if v == nil {
		return -1
	}
	return int16(min(max(-1, *v), math.MaxInt16))
}

// second is a time as points have it: 1970 to 2106.
func second(at time.Time) uint32 { return uint32(min(max(0, at.Unix()), math.MaxUint32)) }

// grow is how many points a History is given room for at a time.
const grow = 16

// add appends a point where one is due. The array behind a History is shared with the
// ones before: none sees beyond its own length.
func (h History) add(p Point) History {
	if len(h) > 0 {
		last := h[len(h)-1]
		if p.Unix < last.Unix || p.Gap() == last.Gap() && slot(p) <= slot(last) {
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

func slot(p Point) int64 { return int64(p.Unix) / int64(Spacing/time.Second) }

// How long a point stands for the time after it.
const (
	standsAlone = time.Minute     // or three cells: the last one, or one before a gap
	standsUntil = 5 * time.Minute // up to the next point: a large fleet is read seldom
)

// Series divides the time from one moment to another into cells of equal length, each
// with its end and without its beginning, and gives a point for each, oldest first: the
// last one in it, else the last one before while that still stands. A cell
// without data, or in which the node could not be read, is a Gap. Without cells, or if
// the time does not advance, there are none.
func (h History) Series(from, to time.Time, cells int) []Point {
	span := to.Sub(from)
	if cells <= 0 || span <= 0 {
		return nil
	}
	out := make([]Point, cells)
	alone := max(3*span/time.Duration(cells), standsAlone)
	next := 0
	for i := range out {
		end := from.Add(time.Duration(float64(span) * float64(i+1) / float64(cells)))
		for next < len(h) && !h[next].At().After(end) {
			next++
		}
		out[i] = gap(time.Time{})
		if next == 0 || h[next-1].Gap() {
			continue
		}
		last, stands := h[next-1], alone
		if next < len(h) && !h[next].Gap() && h[next].At().Sub(last.At()) <= standsUntil {
			stands = standsUntil
		}
		if end.Sub(last.At()) <= stands {
			out[i] = last
		}
	}
	return out
}
