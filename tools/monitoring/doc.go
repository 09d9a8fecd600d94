// Package monitoring evaluates the alerts and the dashboard of deploy/monitoring with
// Prometheus' own parser and rule engine, on recorded metrics of upstream and of our daemon.
// It contains only tests. It is a module of its own because Prometheus has many dependencies.
package monitoring
