// Package monitoring generates the PrometheusRule and the Grafana dashboard of this
// directory from rules.yaml and panels.yaml. tools/monitoring evaluates both.
package monitoring

//go:generate go test -run ^TestGenerated$ -count=1 . -update
