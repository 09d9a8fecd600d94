// Package promtext reads Prometheus's text format (version 0.0.4), in which daemons serve
// their metrics. It is strict within a sample and does not interpret the metrics.
package promtext
