package publish

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/daemon/listen"
)

// summed are the gauges that upstream fills with sums over the cluster.
var summed = map[string]string{
	"awscni_assigned_ip_addresses": "The number of IP addresses assigned to pods of the cluster",
	"awscni_eni_allocated":         "The number of ENIs of the cluster's pools",
	"awscni_eni_max":               "The number of ENIs that the cluster's nodes can have",
	"awscni_ip_max":                "The number of IP addresses that the cluster's nodes can have",
	"awscni_total_ip_addresses":    "The number of IP addresses of the cluster's pools",
	"awscni_total_ipv4_prefixes":   "The number of IPv4 prefixes of the cluster's pools",
}

// counted are the counters that upstream registers but leaves at 0.
var counted = map[string]string{
	"awscni_add_ip_req_count":   "The number of ADDs on the cluster's nodes since this process started",
	"awscni_force_removed_enis": "The number of ENIs removed while pods used them since this process started",
	"awscni_force_removed_ips":  "The number of IP addresses removed while assigned to pods since this process started",
	aggregate.NoAddresses:       "The number of ADDs that found no free address since this process started",
}

// Exposition is what Prometheus scrapes from the helper.
type Exposition struct {
	registry *prometheus.Registry
	polls    *prometheus.CounterVec
	skipped  *prometheus.CounterVec
	read     prometheus.Gauge
	lastPoll prometheus.Gauge
	sums     *sums
}

// NewExposition makes an exposition without figures: before the first poll there are none,
// and zeros would be false.
func NewExposition(skipReasons []string) *Exposition {
	e := &Exposition{
		registry: prometheus.NewRegistry(),
		polls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cni_metrics_helper_polls_total", Help: "Polls by result"}, []string{"result"}),
		skipped:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cni_metrics_helper_skipped_pods_total", Help: "Pods that a poll could not read, by reason"}, []string{"reason"}),
		read:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "cni_metrics_helper_read_pods", Help: "Pods that the last poll read; the totals include these"}),
		lastPoll: prometheus.NewGauge(prometheus.GaugeOpts{Name: "cni_metrics_helper_last_poll_timestamp_seconds", Help: "Time of the last poll that listed the pods"}),
		sums:     newSums(),
	}
	for _, r := range skipReasons {
		e.skipped.WithLabelValues(r)
	}
	e.registry.MustRegister(e.polls, e.skipped, e.read, e.lastPoll, e.sums,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return e
}

// Handler serves the metrics in the Prometheus text format.
func (e *Exposition) Handler() http.Handler {
	return listen.Scrapes(promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
}

// Polled records the figures of a poll and how many pods it read.
func (e *Exposition) Polled(figures []aggregate.Figure, read int, at time.Time) {
	e.polls.WithLabelValues("ok").Inc()
	e.read.Set(float64(read))
	e.lastPoll.Set(float64(at.UnixMilli()) / 1000)
	e.sums.set(figures)
}

// Failed records a poll that could not list the pods.
func (e *Exposition) Failed() { e.polls.WithLabelValues("failed").Inc() }

// Skipped records a pod that could not be read.
func (e *Exposition) Skipped(reason string) { e.skipped.WithLabelValues(reason).Inc() }

// sums collects the figures that have a value.
type sums struct {
	descs map[string]*prometheus.Desc

	mu     sync.Mutex
	values map[string]float64 // guarded by mu; by source family
}

func newSums() *sums {
	s := &sums{descs: make(map[string]*prometheus.Desc), values: make(map[string]float64)}
	for _, group := range []map[string]string{summed, counted} {
		for name, help := range group {
			s.descs[name] = prometheus.NewDesc(name, help, nil, nil)
		}
	}
	return s
}

func (s *sums) set(figures []aggregate.Figure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range figures {
		switch {
		case summed[f.Source] != "":
			s.values[f.Source] = f.Value
		case counted[f.Source] != "":
			s.values[f.Source] += f.Value
		}
	}
}

// Describe implements prometheus.Collector.
func (s *sums) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *sums) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		kind := prometheus.GaugeValue
		if counted[name] != "" {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(s.descs[name], kind, s.values[name])
	}
}
