// Package promtext reads Prometheus's text format (version 0.0.4), as daemons serve their
// metrics. It is strict within a sample and knows nothing of what the metrics mean.
package promtext
