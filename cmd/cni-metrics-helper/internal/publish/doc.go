// Package publish sends the figures of the cluster to CloudWatch, through a queue that
// outlives its failures, and serves them to Prometheus.
//
// It also finds out what the cluster is called there and in which region it is.
package publish
