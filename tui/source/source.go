// Package source is what the screens know of the world: an immutable view of a fleet
// that changes now and then, one node in detail, and the clock. A live fleet, a
// recording and a test's own values are all one.
package source

import (
	"context"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
)

// Source gives the screens their data. Its methods may be called from any goroutine and
// none but Detail waits for anything.
type Source interface {
	// View is the newest picture of the fleet.
	View() *store.View
	// Changed fires when View has something new, at most five times a second.
	Changed() <-chan struct{}
	// Focus says what is looked at, so that it is read first.
	Focus(Focus)
	// Refresh reads what is looked at now.
	Refresh()
	// Pace sets the time between two samples of what is looked at, and whether to sample
	// at all.
	Pace(Pace)
	// Detail reads documents of one node.
	Detail(ctx context.Context, node string, want Want, q Query) Detail
	// Stats tells how the reading goes.
	Stats() Stats
	// Now is the source's time: the clock, or where a recording stands.
	Now() time.Time
	// Title names the fleet: the kubeconfig's context, a file.
	Title() string
}

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
