package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lifecycle are the metrics of start, build and background work.
type lifecycle struct {
	startup    *prometheus.HistogramVec
	nodeInit   *prometheus.HistogramVec
	inProgress *prometheus.GaugeVec
	backend    *prometheus.GaugeVec
	connmark   *prometheus.CounterVec
	repaired   *prometheus.CounterVec
	passes     *prometheus.CounterVec
	flows      *prometheus.CounterVec
}

// startBuckets, in seconds, are Prometheus's defaults, as in upstream, and more: with a
// slow API server or EC2, a start takes minutes.
var startBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}

func newLifecycle(r registrar, opts Options) lifecycle {
	build := r.gauges("awscni_build_info",
		"A metric with a constant '1' value labeled by version, revision, and goversion from which amazon-vpc-cni-k8s was built.",
		"version", "goversion")
	build.WithLabelValues(opts.Version, opts.GoVersion).Set(1)
	l := lifecycle{
		startup: r.histograms("awscni_ipamd_startup_duration_seconds",
			"The duration of IPAMD startup from process start to ready to serve CNI requests",
			startBuckets, "success", "with_api_server", "failure_reason"),
		nodeInit: r.histograms("awscni_ipamd_node_initialization_duration_seconds",
			"The duration of node initialization during IPAMD startup", startBuckets, "success"),
		inProgress: r.gauges("awscni_ipamd_action_inprogress", "The number of ipamd actions in progress", "fn"),
		backend:    r.gauges("awscni_connmark_backend", "The connmark backend in use; the active backend's series is set to 1", "backend"),
		connmark:   r.counters("awscni_connmark_reconcile_total", "The number of connmark Setup/Cleanup reconciliations by result", "result"),
		repaired:   r.counters("awscni_host_state_repairs_total", "The number of host network objects restored after another program removed them, by kind", "object"),
		passes:     r.counters("awscni_conntrack_passes_total", "The number of passes that delete the connection tracking entries of released addresses, by result", "result"),
		flows:      r.counters("awscni_conntrack_deleted_total", "The number of connection tracking entries of released addresses that were deleted"),
	}
	// These series exist from the start, so that a rate is defined before the first result.
	l.connmark.WithLabelValues("success")
	l.connmark.WithLabelValues("error")
	l.passes.WithLabelValues("success")
	l.passes.WithLabelValues("error")
	l.flows.WithLabelValues()
	// The first reconcile runs a second or so after the start; the series exists before it.
	l.inProgress.WithLabelValues(FnReconcilePool)
	return l
}

// Values of failureReason for Started.
const (
	FailedAPIServer = "api_server_connectivity"
	FailedNodeInit  = "node_initialization"
)

// Started records how long the start took until requests were served, or until it failed;
// failureReason is "" on success.
func (l *lifecycle) Started(took time.Duration, withAPIServer bool, failureReason string) {
	l.startup.WithLabelValues(strconv.FormatBool(failureReason == ""), strconv.FormatBool(withAPIServer), failureReason).Observe(took.Seconds())
}

// NodeInitialized records how long initialising the node took.
func (l *lifecycle) NodeInitialized(took time.Duration, err error) {
	l.nodeInit.WithLabelValues(strconv.FormatBool(err == nil)).Observe(took.Seconds())
}

// Values of fn for Action, besides FnNodeInit.
const (
	FnIncreasePool  = "increaseDatastorePool"
	FnDecreasePool  = "decreaseDatastorePool"
	FnReconcilePool = "nodeIPPoolReconcile"
)

// Action counts an action as in progress until done is called.
func (l *lifecycle) Action(fn string) (done func()) {
	g := l.inProgress.WithLabelValues(fn)
	g.Inc()
	return g.Dec
}

// ConnmarkBackend sets the backend in use, "nftables" or "iptables". The other one has no
// series.
func (l *lifecycle) ConnmarkBackend(name string) {
	l.backend.Reset()
	l.backend.WithLabelValues(name).Set(1)
}

// ConnmarkReconcile counts one programming of the host's SNAT and connmark rules.
func (l *lifecycle) ConnmarkReconcile(err error) {
	l.connmark.WithLabelValues(resultOf(err)).Inc()
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// FlowsDeleted counts a pass over connection tracking and the entries that it deleted.
func (l *lifecycle) FlowsDeleted(entries int, err error) {
	l.passes.WithLabelValues(resultOf(err)).Inc()
	l.flows.WithLabelValues().Add(float64(entries))
}

// HostStateRepaired counts restored objects of one kind; the kinds are a closed set.
func (l *lifecycle) HostStateRepaired(object string, n int) {
	l.repaired.WithLabelValues(object).Add(float64(n))
}
