package main

import (
	"slices"
	"time"

	"cnictl/testenv/cmd/internal/figure"
)

// seconds converts a duration to a figure.
func seconds(d time.Duration) figure.Number { return figure.Of(d.Seconds()) }

func milliseconds(d time.Duration) figure.Number { return figure.Of(figure.Milliseconds(d)) }

// row is one measured quantity. Less is better for every row.
type row struct {
	name    string
	unit    string
	samples []float64

	upstream  figure.Number // as measured, docs/performance.md
	aim, must figure.Number // upstream's times a ratio, or absolute if there is no upstream figure
	bound     bound         // the minimum that EC2 allows
}

// median returns the figure used in comparisons.
func (r *row) median() figure.Number {
	if len(r.samples) == 0 {
		return figure.Number{}
	}
	return figure.Of(slices.Sorted(slices.Values(r.samples))[len(r.samples)/2])
}

// spread returns the minimum and maximum of the samples.
func (r *row) spread() string {
	if len(r.samples) < 2 {
		return ""
	}
	return figure.Of(slices.Min(r.samples)).String() + "–" + figure.Of(slices.Max(r.samples)).String()
}

// misses reports whether the row misses its target.
func (r *row) misses() bool {
	m := r.median()
	return r.must.Known && m.Known && m.Value > r.must.Value
}
