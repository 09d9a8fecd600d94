// Package watch holds the plain types that cross between those who sample a fleet and
// those who look at it: what is looked at, how often, one node in detail, and how the
// reading goes. The sampler (daemon/fleet/live), a recording (daemon/fleet/record) and
// the screens (tui/source) share them, so that none needs to know another.
package watch

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// Focus is what is on the screen.
type Focus struct {
	Open    string   // the node whose screen is open, "" = none
	Visible []string // nodes whose rows are shown, in their order
	Away    bool     // the terminal has lost the focus
}

// Pace of the sampling.
type Pace struct {
	Interval time.Duration // 0: leave it
	Paused   bool
}

// Want names documents of a node.
type Want uint

const (
	WantENIs Want = 1 << iota
	WantPlan
	WantEvents
	WantFailures
	WantConfig
	WantLogs
	WantPod
	WantPods // the pods that Kubernetes has on the node
)

// Query narrows documents.
type Query struct {
	Pod    introspect.PodRef    // of WantPod
	Plan   introspect.PlanQuery // of WantPlan: other targets
	Logs   introspect.LogQuery  // of WantLogs
	Events EventsAfter          // of WantEvents
}

// EventsAfter is where a reader of events stands; zero: at their beginning.
type EventsAfter struct {
	Epoch string
	Next  uint64
}

// Detail are documents of one node. What was not wanted or could not be read is null;
// Errors says why.
type Detail struct {
	Node     string
	At       time.Time // of the reading
	ENIs     []introspect.NodeENI
	Plan     *introspect.NodePlan
	Events   *introspect.NodeEvents
	Failures *introspect.NodeFailures
	Config   *introspect.NodeConfig
	Logs     *introspect.NodeLogs
	Pod      *introspect.NodePod
	Pods     []Pod
	Errors   map[Want]introspect.NodeError
}

// Pod is a pod as Kubernetes tells of it.
type Pod struct {
	introspect.PodRef
	Phase       string
	HostNetwork bool
	IPs         []string
	Wants       bool   // it asks for vpc.amazonaws.com/pod-eni
	PodENI      string // its annotation vpc.amazonaws.com/pod-eni, "" = none
	Reason      string // why it does not run, as its status or newest event says
	StartedAt   *time.Time
}

// Stats tell how the reading goes.
type Stats struct {
	Interval    time.Duration // between two samples of what is looked at
	Background  time.Duration // between two samples of the rest, as it turns out
	Widened     bool          // Interval or Background are wider than asked for: the fleet is large
	SweepTook   time.Duration // of the last round over all nodes
	InFlight    int
	Tunnels     int // kept open
	Samples     uint64
	Failed      uint64
	Dropped     uint64
	LatencyP50  time.Duration
	LatencyP99  time.Duration
	APIRequests uint64
	Problem     string // why the list of nodes cannot be had, "" = it can
}
