package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cnictl/daemon/api/cause"
)

// requests count ADD and DEL.
type requests struct {
	adds      prometheus.Counter
	dels      *prometheus.CounterVec
	noAddress prometheus.Counter
	failed    *prometheus.CounterVec
	waiting   prometheus.Gauge
	waited    prometheus.Histogram
}

// waitBuckets, in seconds, range from "the pool had one" through the time of an EC2 assign
// and an attach to the longest configurable wait (60 s).
var waitBuckets = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 30, 60}

func newRequests(r registrar) requests {
	return requests{
		adds:      r.counter("awscni_add_ip_req_count", "The number of add IP address requests"),
		dels:      r.counters("awscni_del_ip_req_count", "The number of delete IP address requests", "reason"),
		noAddress: r.counter("awscni_no_available_ip_addresses", "The number of pod IP assignments that fail due to no available IP addresses"),
		failed:    r.counters("awscni_failed_add_count", "The number of add IP address requests that failed, by cause", "cause"),
		waiting: register(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "awscni_waiting_add_requests", Help: "The number of add IP address requests that wait for the pool to grow",
		})),
		waited: register(r, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "awscni_add_ip_wait_seconds", Help: "The time from an add IP address request to its address", Buckets: waitBuckets,
		})),
	}
}

// AddRequest counts an ADD that arrived.
func (r *requests) AddRequest() { r.adds.Inc() }

// AddWaited records how long an ADD that got an address waited for it.
func (r *requests) AddWaited(d time.Duration) { r.waited.Observe(max(d, 0).Seconds()) }

// AddFailed counts an ADD that got no address. The label is bounded, as codes are a fixed list.
func (r *requests) AddFailed(code cause.Code) { r.failed.WithLabelValues(string(code)).Inc() }

// NoAddress counts an attempt to assign that found no free address.
func (r *requests) NoAddress() { r.noAddress.Inc() }

// Waiting sets the number of ADDs waiting now.
func (r *requests) Waiting(n int) { r.waiting.Set(float64(n)) }

// Reasons given by a DEL. Any other is counted as "Other", because the text comes from
// outside.
const (
	ReasonPodDeleted    = "PodDeleted"
	ReasonSetupNSFailed = "SetupNSFailed"
	reasonOther         = "Other"
)

// DelRequest counts a DEL.
func (r *requests) DelRequest(reason string) {
	if reason != ReasonPodDeleted && reason != ReasonSetupNSFailed {
		reason = reasonOther
	}
	r.dels.WithLabelValues(reason).Inc()
}
