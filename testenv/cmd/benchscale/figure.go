package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// number is a figure that may not be known.
type number struct {
	value float64
	known bool
}

func known(v float64) number { return number{v, true} }

// seconds is a time as a figure.
func seconds(d time.Duration) number { return known(d.Seconds()) }

func milliseconds(d time.Duration) number { return known(float64(d) / float64(time.Millisecond)) }

// times is a share of a figure.
func (n number) times(share float64) number { return number{n.value * share, n.known} }

// over is the ratio of two figures, unknown where it says nothing.
func (n number) over(m number) number {
	if !n.known || !m.known || m.value == 0 {
		return number{}
	}
	return known(n.value / m.value)
}

// String has three digits, or all of those before the point.
func (n number) String() string {
	if !n.known {
		return "–"
	}
	switch a := math.Abs(n.value); {
	case n.value == math.Trunc(n.value), a >= 100:
		return fmt.Sprintf("%.0f", n.value)
	case a >= 10:
		return fmt.Sprintf("%.1f", n.value)
	}
	return fmt.Sprintf("%.2f", n.value)
}

// row is one measured quantity. Less is better for all.
type row struct {
	name    string
	unit    string
	samples []float64

	original  number // spec/performance.md §2
	aim, must number // §3: the original's times a ratio; an absolute one where there is no other
	bound     bound  // the least that EC2 allows
}

// median is what counts of several samples, and what is compared.
func (r *row) median() number {
	if len(r.samples) == 0 {
		return number{}
	}
	return known(slices.Sorted(slices.Values(r.samples))[len(r.samples)/2])
}

// spread is the least and the most of the samples.
func (r *row) spread() string {
	if len(r.samples) < 2 {
		return ""
	}
	return known(slices.Min(r.samples)).String() + "–" + known(slices.Max(r.samples)).String()
}

// misses reports whether the row is worse than it must be.
func (r *row) misses() bool {
	m := r.median()
	return r.must.known && m.known && m.value > r.must.value
}
