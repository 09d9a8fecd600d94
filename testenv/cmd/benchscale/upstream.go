package main

import (
	"time"

	"cnictl/testenv/cmd/internal/figure"
)

// Upstream's figures (docs/performance.md), and our targets as ratios to them.

// target is such a ratio, for one kind of figure.
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

// against sets upstream's figure and our target.
func (r *row) against(upstream figure.Number, t target) *row {
	r.upstream, r.aim, r.must = upstream, upstream.Times(t.aim), upstream.Times(t.must)
	return r
}

// possible sets upstream's figure and the one considered possible, which is not required.
func (r *row) possible(upstream, possible figure.Number) *row {
	r.upstream, r.aim = upstream, possible
	return r
}

// none requires 0, whatever upstream's figure is.
func (r *row) none() *row {
	r.aim, r.must = figure.Of(0), figure.Of(0)
	return r
}

// askedSeldom limits requests per ADD. An ADD makes none, but the limit is not 0: the daemon
// reads its ENIs soon after the start and once a minute, with about ten requests to the
// metadata service per ENI, and that may coincide with the ADDs.
func (r *row) askedSeldom() *row {
	r.aim, r.must = figure.Of(0.1), figure.Of(0.5)
	return r
}

const (
	upstreamStartAtOnce    = 300 * time.Millisecond
	upstreamStartRealistic = 1150 * time.Millisecond
	upstreamMemory         = 68 // MB, the daemon with 100 pods
	upstreamCalls          = 35 // for 150 pods at latency 0
)
