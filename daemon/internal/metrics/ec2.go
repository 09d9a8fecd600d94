package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ec2 counts and times calls to EC2 and the instance metadata.
type ec2 struct {
	latency   *prometheus.SummaryVec
	apiErrors *prometheus.CounterVec
	calls     *prometheus.CounterVec
	failures  *prometheus.CounterVec
	utils     *prometheus.CounterVec
	codes     *codes
}

const (
	// APIWaitForENI is the pseudo-call that times the wait until a new ENI is usable.
	APIWaitForENI = "waitForENIAndIPsAttached"
	// CodeIMDS is the error code of every failed metadata request.
	CodeIMDS = "IMDSRequestError"
	// apiOutOfSync is the pseudo-call counted when metadata and EC2 disagree.
	apiOutOfSync = "IMDSMetaDataOutOfSync"
	// CodeNoAnswer is the error code of requests that failed without an answer: timeouts,
	// lost connections. Upstream does not count them.
	CodeNoAnswer = "RequestError"
)

func newEC2(r registrar) ec2 {
	return ec2{
		latency: register(r, prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "awscni_aws_api_latency_ms", Help: "AWS API call latency in ms",
		}, []string{"api", "error", "status"})),
		apiErrors: r.counters("awscni_aws_api_error_count", "The number of times AWS API returns an error", "api", "error"),
		calls:     r.counters("awscni_ec2api_req_count", "The number of requests made to EC2 APIs by CNI", "fn"),
		failures:  r.counters("awscni_ec2api_error_count", "The number of failed requests to EC2 APIs by CNI", "fn"),
		utils:     r.counters("awscni_aws_utils_error_count", "The number of errors of operations made of several AWS calls, by code", "fn", "error"),
		codes:     &codes{seen: map[string]bool{}},
	}
}

// EC2Call records one request to EC2, including the SDK's retries: the action, its duration
// and, on failure, the error and its EC2 code, "" if none (timeouts, lost connections).
func (e *ec2) EC2Call(action string, took time.Duration, code string, err error) {
	e.calls.WithLabelValues(action).Inc()
	if err != nil {
		e.failures.WithLabelValues(action).Inc()
	}
	api := action
	if action == "AssignIpv6Addresses" {
		api = "AssignIpv6AddressesWithContext" // upstream's label
	}
	e.APILatency(api, took, code, err)
	if err == nil {
		return
	}
	if code = e.codes.bounded(code); code == "" {
		code = CodeNoAnswer
	}
	e.apiErrors.WithLabelValues(api, code).Inc()
}

// APILatency records the duration of something other than a single EC2 request, such as
// APIWaitForENI.
func (e *ec2) APILatency(api string, took time.Duration, code string, err error) {
	failed, status := "false", "200"
	if err != nil {
		failed, status = "true", e.codes.bounded(code)
	}
	e.latency.WithLabelValues(api, failed, status).Observe(float64(took) / float64(time.Millisecond))
}

// IMDSError counts a failed metadata request by the name of the getter, such as "GetMACs".
func (e *ec2) IMDSError(getter string) { e.apiErrors.WithLabelValues(getter, CodeIMDS).Inc() }

// IMDSOutOfSync counts an ENI that the metadata lists but EC2 does not know.
func (e *ec2) IMDSOutOfSync(code string) {
	e.apiErrors.WithLabelValues(apiOutOfSync, e.codes.bounded(code)).Inc()
}

// Operations of AWSUtilsError.
const (
	FnAllocENIDelete       = "AllocENIDeleteErr"
	FnENICleanup           = "ENICleanupUponModifyNetworkErr"
	FnGetENIAttachmentID   = "getENIAttachmentIDFailed"
	FnFreeENIDelete        = "FreeENIDeleteErr"
	FnCleanUpLeakedENIsDel = "cleanUpLeakedENIDeleteErr"
)

// AWSUtilsError counts a failed operation with the code of the EC2 error that ended it.
func (e *ec2) AWSUtilsError(fn, code string) {
	e.utils.WithLabelValues(fn, e.codes.bounded(code)).Inc()
}
