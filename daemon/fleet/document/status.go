package document

import (
	"cmp"
	"time"

	"cnictl/daemon/api/introspect"
)

// FleetStatus is what cnictl status shows: the totals and problems of a sweep.
type FleetStatus struct {
	APIVersion string       `json:"apiVersion" null:"never"` // version of the document
	Kind       string       `json:"kind" null:"never"`       // FleetStatus
	Nodes      NodeCounts   `json:"nodes"`                   // number of nodes by state
	Addresses  Addresses    `json:"addresses"`               // addresses of the pools
	ENIs       ENICounts    `json:"enis"`                    // network interfaces
	Activity   Activity     `json:"activity"`                // requests and EC2 calls since the daemons started
	Subnets    []SubnetFill `json:"subnets"`                 // latest data on each subnet
	Problems   []Problem    `json:"problems"`                // problems of the nodes, worst first
	Causes     []CauseCount `json:"causes"`                  // causes reported by nodes, worst first
	Sweep      SweepStats   `json:"sweep"`                   // statistics of the sweep
	Partial    bool         `json:"partial"`                 // the totals exclude the nodes that could not be read
	Errors     []NodeError  `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time    `json:"sampledAt"`               // end of the sweep
}

// NodeCounts counts nodes by state.
type NodeCounts struct {
	Total       int `json:"total"`       // all nodes
	Live        int `json:"live"`        // answered
	Unreachable int `json:"unreachable"` // could not be read
	Forbidden   int `json:"forbidden"`   // access was denied
	Stale       int `json:"stale"`       // shown with an older sample
	MetricsOnly int `json:"metricsOnly"` // only metrics could be read
	APIOnly     int `json:"apiOnly"`     // not read yet, or cannot be read
	NoDaemon    int `json:"noDaemon"`    // run no daemon
}

// Addresses are the sums over the nodes that report them; null if nodes should report them but
// none does.
type Addresses struct {
	Limit    *int `json:"limit"`    // maximum; null if unknown for some node
	Room     *int `json:"room"`     // pod addresses that can still be added, up to max-pods where that is below the limit; null if unknown for some node
	Total    *int `json:"total"`    // held
	Assigned *int `json:"assigned"` // in use by pods
	Cooling  *int `json:"cooling"`  // in cooldown; a lower bound where only metrics could be read
	Free     *int `json:"free"`     // available to a pod now
}

// ENICounts are the sums over the nodes that report them; null if nodes should report them but
// none does.
type ENICounts struct {
	Attached *int `json:"attached"` // attached and managed; a lower bound where only metrics could be read
	Limit    *int `json:"limit"`    // maximum; null if unknown for some node
}

// Activity is the sums over the nodes that report them; null if none does.
type Activity struct {
	WaitingADDs *int `json:"waitingAdds"` // ADDs waiting for an address
	ADDs        *int `json:"adds"`        // CNI ADD requests
	FailedADDs  *int `json:"failedAdds"`  // ADDs that got no address
	DELs        *int `json:"dels"`        // CNI DEL requests
	EC2Calls    *int `json:"ec2Calls"`    // calls to EC2
	EC2Errors   *int `json:"ec2Errors"`   // calls to EC2 that failed

	Partial bool `json:"partial"` // some node with a daemon does not report all of these: they are lower bounds
	Nodes   int  `json:"nodes"`   // number of nodes that report any of these
}

// SubnetFill is a subnet with its fill level.
type SubnetFill struct {
	introspect.Subnet
	Usable  *int     `json:"usable"`  // usable addresses of the range; null if the range is unknown
	Percent *float64 `json:"percent"` // usable addresses in use, by nodes or anything else, in percent; null if unknown
	Short   bool     `json:"short"`   // no address is free, or at least 95 % are in use; false if unknown

	Left        string   `json:"left"`        // time until no address is free and how sure that is, such as "~14h, 4 readings"; empty if unknown
	LeftSeconds *float64 `json:"leftSeconds"` // until it is as likely empty as not; null if unknown, or too far ahead

	Namespaces []NamespaceUse `json:"namespaces"` // of a short subnet: those with the most addresses in it, most first; empty if unknown
}

// NamespaceUse is what the pods of a namespace have in a subnet.
type NamespaceUse struct {
	Namespace string `json:"namespace" null:"never"` // name of the namespace
	Assigned  int    `json:"assigned"`               // addresses of its pods in the subnet
	Nodes     int    `json:"nodes"`                  // on which it has them
}

// Severity of a problem.
type Severity string

const (
	SeverityCritical Severity = "critical" // every new pod of a node fails now, or running pods are cut off

	SeverityError   Severity = "error"   // pods fail, or cannot be checked
	SeverityWarning Severity = "warning" // degraded, or will fail
	SeverityInfo    Severity = "info"    // worth knowing
)

// Rank orders severities, worst first.
func (s Severity) Rank() int {
	switch s {
	case SeverityCritical:
		return 0
	case SeverityError:
		return 1
	case SeverityWarning:
		return 2
	}
	return 3
}

// Harms reports that pods fail, or that it cannot be checked.
func (s Severity) Harms() bool { return s.Rank() <= SeverityError.Rank() }

// Sign is the severity in one character, in tables and on screens; SignASCII where those are all there is.
func (s Severity) Sign() string { return [...]string{"!", "!", "⚠", "i"}[s.Rank()] }

// SignASCII is Sign in ASCII.
func (s Severity) SignASCII() string { return [...]string{"!", "!", "W", "i"}[s.Rank()] }

// Problem is one thing wrong with one node.
type Problem struct {
	Node     string     `json:"node" null:"never"`     // node name
	Severity Severity   `json:"severity" null:"never"` // error, warning, info
	Code     string     `json:"code" null:"never"`     // a cause code, a reason for a failed reading, or a code of cnictl
	Finding  string     `json:"finding"`               // the code of cnictl doctor; empty if it is no fault of the node
	Effect   Severity   `json:"effect" null:"never"`   // what it does to pods, as cnictl doctor says it: critical, error, warning, info
	Message  string     `json:"message" null:"never"`  // one sentence
	At       *time.Time `json:"at"`                    // when it happened; null if unknown
	Since    *time.Time `json:"since"`                 // start of the problem; null if unknown
	Until    *time.Time `json:"until"`                 // expected end of the problem; null if unknown
}

// Name is the code under which tables and screens show a problem: that of cnictl doctor if it has one.
func (p Problem) Name() string { return cmp.Or(p.Finding, p.Code) }

// CauseCount is one cause with the number of nodes that report it.
type CauseCount struct {
	Severity   Severity `json:"severity" null:"never"` // worst severity on any node
	Code       string   `json:"code" null:"never"`     // as in Problem
	Finding    string   `json:"finding"`               // as in Problem
	Title      string   `json:"title"`                 // one-line meaning of the code
	Nodes      int      `json:"nodes"`                 // number of nodes that report it
	FailedADDs *int     `json:"failedAdds"`            // ADDs that failed with this cause since the daemons started; null if none were counted
}

// SweepStats are statistics of one reading of the nodes.
type SweepStats struct {
	Nodes             int           `json:"nodes"`             // nodes to read
	Read              int           `json:"read"`              // nodes read completely
	Failed            int           `json:"failed"`            // nodes that could not be read, or only in part
	FailedBy          []ReasonCount `json:"failedBy"`          // reasons for failed readings, most frequent first
	Seconds           *float64      `json:"seconds"`           // duration from the first request to the last answer; null for recordings and watched nodes
	LatencyP50Seconds *float64      `json:"latencyP50Seconds"` // median latency of the answers; null without answers
	LatencyP99Seconds *float64      `json:"latencyP99Seconds"` // 99th percentile of the latency of the answers; null without answers
}

// ReasonCount counts nodes that could not be read for one reason.
type ReasonCount struct {
	Reason introspect.Reason `json:"reason" null:"never"` // as in NodeError
	Nodes  int               `json:"nodes"`               // number of nodes
}
