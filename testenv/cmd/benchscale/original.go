package main

import (
	"time"

	"cnictl/testenv/cmd/internal/figure"
)

// Upstream's figures (spec/performance.md §2), and what is wanted of us as a ratio to
// them (§3).

// target is such a ratio, for a kind of figures.
type target struct{ must, aim float64 }

var (
	startAtOnce    = target{must: 0.5, aim: 0.2}
	startRealistic = target{must: 0.7, aim: 0.4}
	scaleAtOnce    = target{must: 0.2, aim: 0.06}
	scaleRealistic = target{must: 0.3, aim: 0.1}
	scalePrefixes  = target{must: 0.15, aim: 0.05}
	scaleCalls     = target{must: 0.70, aim: 0.55}
	daemonMemory   = target{must: 0.7, aim: 0.5}
)

// against adds what upstream does and what is wanted of us.
func (r *row) against(original figure.Number, t target) *row {
	r.original, r.aim, r.must = original, original.Times(t.aim), original.Times(t.must)
	return r
}

// hoped adds what upstream does and what §2 holds to be possible, of which §3 makes
// no rule.
func (r *row) hoped(original, possible figure.Number) *row {
	r.original, r.aim = original, possible
	return r
}

// none says that a figure must be 0 whatever upstream does.
func (r *row) none() *row {
	r.aim, r.must = figure.Of(0), figure.Of(0)
	return r
}

// askedSeldom is for requests per ADD, of which there must be none: one that asks makes
// it 1. The daemon itself looks at its ENIs soon after the start and once a minute, with
// some ten requests to the metadata service for each ENI, which may fall among the ADDs.
func (r *row) askedSeldom() *row {
	r.aim, r.must = figure.Of(0.1), figure.Of(0.5)
	return r
}

const (
	originalStartAtOnce    = 300 * time.Millisecond
	originalStartRealistic = 1150 * time.Millisecond
	originalMemory         = 68 // MB of the daemon, 100 pods
	originalCalls          = 35 // of 150 pods at latency 0
)
