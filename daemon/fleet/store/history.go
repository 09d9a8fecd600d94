package store

import (
	"math"
	"time"
)

// HistoryLen is the maximum number of points in a History.
const HistoryLen = 90

// Spacing is the time between two points of a History: 90 points are 15 minutes. Samples in
// between are dropped, except those that begin or end a gap.
const Spacing = 10 * time.Second

// Point is the state of a node at one moment, kept small: a fleet has half a million.
type Point struct {
	Unix      uint32 // the time, in seconds
	Assigned  int32  // -1 = unknown, see Gap
	Cooling   int32  // -1 = unknown
	Free      int32
	ENIs      int16 // -1 = unknown
	Waiting   int16 // waiting ADDs; -1 = unknown
	WarmIP    int16 // WARM_IP_TARGET at the time; -1 = unknown or unset
	MinimumIP int16 // MINIMUM_IP_TARGET at the time; -1 = unknown or unset
}

// History holds the latest points, oldest first. A failed read of the node is a point with
// Assigned -1: a gap, not a zero.
type History []Point

// At returns the time of the point, to the second; zero for a gap without a time.
func (p Point) At() time.Time {
	if p.Unix == 0 {
		return time.Time{}
	}
	return time.Unix(int64(p.Unix), 0).UTC()
}

// Gap reports that the state at that time is unknown.
func (p Point) Gap() bool { return p.Assigned < 0 }

// gap returns a point without data.
func gap(at time.Time) Point {
	return Point{Unix: second(at), Assigned: -1, Cooling: -1, ENIs: -1, Waiting: -1, WarmIP: -1, MinimumIP: -1}
}

// point returns the state of a node as a point.
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

// Taken counts the addresses that pods have or had until recently, as far as known.
func (p Point) Taken() int { return int(p.Assigned + max(0, p.Cooling)) }

// small limits a count: with IPv6 prefixes it may not fit.
func small(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) }

func smaller(v *int) int16 {
	if v == nil {
		return -1
	}
	return int16(min(max(-1, *v), math.MaxInt16))
}

// second converts a time to that of a point: 1970 to 2106.
func second(at time.Time) uint32 { return uint32(min(max(0, at.Unix()), math.MaxUint32)) }

// grow is how many points a History grows by.
const grow = 16

// add appends a point if one is due. A History shares its array with earlier ones, none of
// which sees beyond its length.
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

// How long a point stays valid.
const (
	standsAlone = time.Minute     // or three cells: the last point, or one before a gap
	standsUntil = 5 * time.Minute // until the next point: a large fleet is read less often
)

// Series divides the time span into cells of equal length, which include their end but not
// their beginning, and returns one point per cell, oldest first: the last point in the cell,
// else the last one before it, if still valid. A cell without data, or in which the node could
// not be read, is a Gap. Series returns nil if cells or the span is not positive.
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

// trendSpan is how far back a trend goes.
const trendSpan = 15 * time.Minute

// Trend returns the addresses that pods had during the 15 minutes before the newest point, in
// equal steps, oldest first, as a fraction of Capacity, or of the most addresses ever held if
// that is unknown. Unknown steps are NaN.
func (n *Node) Trend(steps int) []float64 {
	if len(n.History) == 0 {
		return nil
	}
	full := 0
	if most := n.Capacity(); most != nil {
		full = *most
	} else {
		for _, p := range n.History {
			if !p.Gap() {
				full = max(full, p.Taken()+int(p.Free))
			}
		}
	}
	newest := n.History[len(n.History)-1].At()
	values := make([]float64, steps)
	for i, p := range n.History.Series(newest.Add(-trendSpan), newest, steps) {
		values[i] = math.NaN()
		if !p.Gap() {
			values[i] = float64(p.Assigned) / float64(max(1, full))
		}
	}
	return values
}
