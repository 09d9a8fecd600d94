// Package metrics holds the daemon's Prometheus metrics: all that upstream
// exposes, under its names, types and labels (spec/ipamd.md §8.1), and ours beside
// them.
//
// What comes by events (counters, durations) has a method each. What is a state of
// the pool is not kept here at all: it is asked for at scrape time through one
// callback that returns a [PoolGauges], so an ADD pays for a counter or two, and
// series of addresses that are gone vanish with them.
//
// Fixed against upstream: network cards are added up instead of overwriting each
// other; series of removed CIDRs disappear; forced removals correct every gauge;
// latencies keep fractions of a millisecond; the label `error` of
// awscni_aws_utils_error_count is a code and not the full text, and codes are bounded in
// shape and number; requests without an answer and all failed metadata reads are
// counted, their latency observed; histograms reach beyond 10 s.
//
// A Metrics has a registry of its own; nothing is registered globally and nothing
// happens at package initialisation.
package metrics
