// Package publish sends the figures of the cluster to CloudWatch, through a queue that keeps
// them while CloudWatch fails, and serves them to Prometheus.
//
// It also finds out the name of the cluster and its region.
package publish
