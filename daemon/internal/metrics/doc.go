// Package metrics holds the daemon's Prometheus metrics: all of upstream's, under the same
// names, types and labels, and our own.
//
// Each event (a counter or a duration) has a method. The state of the pool is not kept
// here: one callback returns it at scrape time as a [PoolGauges]. So an ADD costs only a
// counter or two, and the series of an address vanish with it.
//
// Improvements on upstream: network cards are added up instead of overwriting each
// other; series of removed CIDRs disappear; forced removals correct every gauge;
// latencies keep fractions of a millisecond; the label `error` of
// awscni_aws_utils_error_count is a code instead of the full text, and codes are bounded
// in shape and number; requests without an answer and all failed metadata reads are
// counted, and their latency observed; histograms reach beyond 10 s.
//
// Each Metrics has its own registry. Nothing is registered globally, and nothing happens
// at package initialisation.
package metrics
