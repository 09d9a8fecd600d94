// Package publish gives the figures of the cluster to those who look at them:
// CloudWatch, through a queue that outlives its failures, and Prometheus.
//
// It also finds out what the cluster is called there and in which region it is.
package publish
