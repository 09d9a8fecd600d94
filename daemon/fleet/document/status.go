package document

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// FleetStatus is what cnictl status shows: the totals of a sweep and what is wrong.
type FleetStatus struct {
	APIVersion string       `json:"apiVersion" null:"never"` // version of the document
	Kind       string       `json:"kind" null:"never"`       // FleetStatus
	Nodes      NodeCounts   `json:"nodes"`                   // by state
	Addresses  Addresses    `json:"addresses"`               // of the pools
	ENIs       ENICounts    `json:"enis"`                    // network interfaces
	Activity   Activity     `json:"activity"`                // since the daemons started
	Subnets    []SubnetFill `json:"subnets"`                 // the freshest news of each
	Problems   []Problem    `json:"problems"`                // worst first
	Causes     []CauseCount `json:"causes"`                  // what nodes report, by cause, worst first
	Sweep      SweepStats   `json:"sweep"`                   // how the reading of the nodes went
	Partial    bool         `json:"partial"`                 // the totals lack the nodes that could not be read
	Errors     []NodeError  `json:"errors"`                  // of the nodes that could not be read
	SampledAt  time.Time    `json:"sampledAt"`               // end of the sweep
}

// NodeCounts counts nodes by state.
type NodeCounts struct {
	Total       int `json:"total"`       // nodes
	Live        int `json:"live"`        // that answered
	Unreachable int `json:"unreachable"` // that could not be read
	Forbidden   int `json:"forbidden"`   // that may not be read
	Stale       int `json:"stale"`       // an older sample is shown
	MetricsOnly int `json:"metricsOnly"` // only metrics could be read
	APIOnly     int `json:"apiOnly"`     // not asked, or there is nothing to ask
	NoDaemon    int `json:"noDaemon"`    // run no daemon
}

// Addresses are the sums over the nodes that report them; null when none of the nodes that
// should does.
type Addresses struct {
	Limit    *int `json:"limit"`    // null when that of some node is unknown
	Room     *int `json:"room"`     // that could be added for pods, up to max-pods where that is below the limit; null as limit
	Total    *int `json:"total"`    // held
	Assigned *int `json:"assigned"` // pods have them
	Cooling  *int `json:"cooling"`  // rest after their last pod; a lower bound where only metrics could be read
	Free     *int `json:"free"`     // can be given to a pod now
}

// ENICounts are the sums over the nodes that report them; null when none of the nodes that
// should does.
type ENICounts struct {
	Attached *int `json:"attached"` // and managed; a lower bound where only metrics could be read
	Limit    *int `json:"limit"`    // null when that of some node is unknown
}

// Activity are the sums over the nodes that report them; null when none does.
type Activity struct {
	WaitingADDs *int `json:"waitingAdds"` // ADDs that wait for an address
	ADDs        *int `json:"adds"`        // requests of pods
	FailedADDs  *int `json:"failedAdds"`  // of these without an address
	DELs        *int `json:"dels"`        // requests of pods that end
	EC2Calls    *int `json:"ec2Calls"`    // calls of EC2
	EC2Errors   *int `json:"ec2Errors"`   // of these that failed

	Partial bool `json:"partial"` // some node with a daemon does not report all of them: they are lower bounds
	Nodes   int  `json:"nodes"`   // that report some of them
}

// SubnetFill is a subnet with how full it is.
type SubnetFill struct {
	introspect.Subnet
	Usable  *int     `json:"usable"`  // addresses that the range gives; null when the range is unknown
	Percent *float64 `json:"percent"` // of these taken, by whomever; null when unknown
	Short   bool     `json:"short"`   // no address is free, or 95% are taken; false where that is unknown
}

// Severity of a problem.
type Severity string

const (
	SeverityError   Severity = "error"   // pods fail, or cannot be checked
	SeverityWarning Severity = "warning" // degraded, or will fail
	SeverityInfo    Severity = "info"    // worth knowing
)

// Problem is one thing wrong with one node.
type Problem struct {
	Node     string     `json:"node" null:"never"`     // where it is
	Severity Severity   `json:"severity" null:"never"` // error, warning, info
	Code     string     `json:"code" null:"never"`     // a cause code, a Reason, or a word of ours
	Message  string     `json:"message" null:"never"`  // one sentence
	At       *time.Time `json:"at"`                    // when it happened
	Since    *time.Time `json:"since"`                 // since when it holds
	Until    *time.Time `json:"until"`                 // until when it will hold
}

// CauseCount is one cause with how many nodes report it.
type CauseCount struct {
	Severity   Severity `json:"severity" null:"never"` // the worst that a node gives it
	Code       string   `json:"code" null:"never"`     // as in Problem
	Title      string   `json:"title"`                 // the cause in a line
	Nodes      int      `json:"nodes"`                 // that report it
	FailedADDs *int     `json:"failedAdds"`            // with this cause since the daemons started; null when none is counted
}

// SweepStats describe a reading of the nodes.
type SweepStats struct {
	Nodes             int           `json:"nodes"`             // to be read
	Read              int           `json:"read"`              // that were read completely
	Failed            int           `json:"failed"`            // that could not be read, or only in part
	FailedBy          []ReasonCount `json:"failedBy"`          // the reasons, the most frequent first
	Seconds           *float64      `json:"seconds"`           // from the first question to the last answer; null of a recording and of nodes that are watched
	LatencyP50Seconds *float64      `json:"latencyP50Seconds"` // of the answers, their median; null without any
	LatencyP99Seconds *float64      `json:"latencyP99Seconds"` // of the answers, what one in a hundred exceeds; null without any
}

// ReasonCount counts nodes that could not be read for one reason.
type ReasonCount struct {
	Reason introspect.Reason `json:"reason" null:"never"` // as in NodeError
	Nodes  int               `json:"nodes"`               // with it
}
