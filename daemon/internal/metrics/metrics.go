package metrics

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cnictl/daemon/listen"
)

// Options describe the build and the source of the pool's state.
type Options struct {
	Version   string // of the daemon; may be ""
	GoVersion string // runtime.Version()

	// Pool is called at every scrape, in the scraper's goroutine. It may be nil and set
	// later with SetPool; until then the pool's gauges are zero.
	Pool func() PoolGauges
}

// Metrics are the metrics of one daemon. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	pool     atomic.Pointer[func() PoolGauges]

	requests
	ec2
	errorCounts
	lifecycle
	planning
	policyAgent
}

// New makes and registers all metrics.
func New(opts Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	if opts.Pool != nil {
		m.SetPool(opts.Pool)
	}
	r := registrar{m.registry}
	m.requests = newRequests(r)
	m.ec2 = newEC2(r)
	m.errorCounts = newErrorCounts(r)
	m.lifecycle = newLifecycle(r, opts)
	m.planning = newPlanning(r)
	m.policyAgent = newPolicyAgent(r)
	m.registry.MustRegister(
		poolCollector{m, newPoolDescs()},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// SetPool sets or replaces Options.Pool.
func (m *Metrics) SetPool(pool func() PoolGauges) { m.pool.Store(&pool) }

// Handler serves the metrics in Prometheus's text format and counts its own requests. It
// leaves out a family that cannot be collected and serves the others.
func (m *Metrics) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry,
		listen.Scrapes(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})))
}

// Gatherer returns the metric families for tests and the support bundle.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// registrar makes and registers metrics. Names, labels and help are constants of this
// package, so a rejected one is a bug here and panics.
type registrar struct{ to *prometheus.Registry }

func register[C prometheus.Collector](r registrar, c C) C {
	r.to.MustRegister(c)
	return c
}

func (r registrar) counter(name, help string) prometheus.Counter {
	return register(r, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (r registrar) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (r registrar) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (r registrar) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}
