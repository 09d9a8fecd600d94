package introspect

import "time"

// FleetStatus is what cnictl status shows: the totals of a sweep and what is wrong.
type FleetStatus struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Nodes      NodeCounts  `json:"nodes"`
	Addresses  Addresses   `json:"addresses"`
	ENIs       ENICounts   `json:"enis"`
	Activity   Activity    `json:"activity"`
	Subnets    []Subnet    `json:"subnets"`  // the freshest news of each
	Problems   []Problem   `json:"problems"` // worst first
	Partial    bool        `json:"partial"`  // the totals lack the nodes that could not be read
	Errors     []NodeError `json:"errors"`
	SampledAt  time.Time   `json:"sampledAt"`
}

// NodeCounts counts nodes by state.
type NodeCounts struct {
	Total       int `json:"total"`
	Live        int `json:"live"`
	Unreachable int `json:"unreachable"`
	Forbidden   int `json:"forbidden"`
	Stale       int `json:"stale"`       // an older sample is shown
	MetricsOnly int `json:"metricsOnly"` // only metrics could be read
	APIOnly     int `json:"apiOnly"`     // not asked, or there is nothing to ask
	NoDaemon    int `json:"noDaemon"`    // run no daemon
}

// Addresses are the sums over the nodes read.
type Addresses struct {
	Limit    *int `json:"limit"` // null when that of some node read is not known
	Total    int  `json:"total"`
	Assigned int  `json:"assigned"`
	Cooling  int  `json:"cooling"`
	Free     int  `json:"free"`
}

// ENICounts are the sums over the nodes read.
type ENICounts struct {
	Attached int  `json:"attached"`
	Limit    *int `json:"limit"` // null when that of some node read is not known
}

// Activity are the sums over the nodes that tell them; null when none does.
type Activity struct {
	WaitingADDs *int `json:"waitingAdds"`
	ADDs        *int `json:"adds"`
	FailedADDs  *int `json:"failedAdds"`
	DELs        *int `json:"dels"`
	EC2Calls    *int `json:"ec2Calls"`
	EC2Errors   *int `json:"ec2Errors"`
}

// Severity of a problem.
type Severity string

const (
	SeverityError   Severity = "error"   // pods fail or cannot be seen to work
	SeverityWarning Severity = "warning" // degraded, or will fail
	SeverityInfo    Severity = "info"    // worth knowing
)

// Problem is one thing wrong with one node.
type Problem struct {
	Node     string     `json:"node"`
	Severity Severity   `json:"severity"`
	Code     string     `json:"code"` // a cause code, a Reason, or a word of ours
	Message  string     `json:"message"`
	At       *time.Time `json:"at"`    // when it happened
	Since    *time.Time `json:"since"` // since when it holds
	Until    *time.Time `json:"until"` // until when it will hold
}
