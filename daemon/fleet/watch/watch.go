// Package watch is what those who sample a fleet and those who look at it share: a Source
// with its view, what is looked at and how often, one node in detail, and how the reading
// goes. The sampler (daemon/fleet/live) and a recording (daemon/fleet/record) are such
// sources; the screens know neither.
package watch

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// Focus is what is on the screen.
type Focus struct {
	Open    string   // the node whose screen is open, "" = none
	Visible []string // nodes whose rows are shown, in their order
	Away    bool     // the terminal has lost the focus
	// Maps: maps of subnets are shown, for which the addresses of all nodes are read. They
	// cost more than all the rest, so that without it only those of the open node are.
	Maps bool
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
	// WantKubeEvents: what Kubernetes reports of the node and the pods on it, as far as it
	// concerns the CNI.
	WantKubeEvents
	// WantContainerLog: what the daemon's container wrote, through Kubernetes. Wanted
	// together with WantLogs it is read only of a daemon that does not serve its log.
	WantContainerLog
	// WantNodeUse: what Kubernetes knows of the use of the node, for one whose daemon does
	// not answer.
	WantNodeUse
	// WantClusterPods: the pods of all nodes, and those that no node has yet. The node of
	// Detail is not asked.
	WantClusterPods
)

// Query narrows documents.
type Query struct {
	Pod    introspect.PodRef    // of WantPod
	Plan   introspect.PlanQuery // of WantPlan: other targets
	Logs   introspect.LogQuery  // of WantLogs
	Events EventsAfter          // of WantEvents

	KubeEventsSince time.Time         // of WantKubeEvents; zero: all that Kubernetes keeps, an hour as a rule
	Container       ContainerLogQuery // of WantContainerLog
	Find            PodQuery          // of WantClusterPods
}

// PodQuery chooses pods of a cluster; zero: all.
type PodQuery struct {
	Namespace string     // "" = any
	Name      string     // or its beginning, where none has that name; "" = any
	IP        netip.Addr // of one that has it; zero: any
}

// EventsAfter is where a reader of events stands; zero: at their beginning.
type EventsAfter struct {
	Epoch string
	Next  uint64
}

// Matches reports whether a pod is one of those asked for, as far as the pod alone says.
func (q PodQuery) Matches(p Pod) bool {
	return (q.Namespace == "" || p.Namespace == q.Namespace) && strings.HasPrefix(p.Name, q.Name) &&
		(!q.IP.IsValid() || slices.Contains(p.IPs, q.IP.String()))
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
	Errors   map[Want]document.NodeError

	KubeEvents   []KubeEvent // oldest first
	ContainerLog *ContainerLog
	Use          *NodeUse
	ClusterPods  *ClusterPods
}

// ClusterPods are the pods that Kubernetes has.
type ClusterPods struct {
	Pods []Pod
	At   time.Time // when they were listed; zero: of a recording, at several moments

	Nodes       map[string]bool // whose pods these are; nil: all nodes'
	WithoutOnly bool            // there are more than MaxClusterPods: those without an address
}

// MaxClusterPods is how many pods of a cluster are listed. Of more, only those without an
// address are: the daemons list the others.
const MaxClusterPods = 20_000

// NodeUse is what Kubernetes alone knows of the use of a node: all that is known where the
// daemon does not answer.
type NodeUse struct {
	Pods    int // on the node that have not ended, those of the host's network too
	Network int // of them with a network of their own: each has an address or waits for one
	Branch  int // of them that ask for vpc.amazonaws.com/pod-eni
	Waiting int // of Network without an address yet

	// CNINode: null: the node has none, or it may not be read; CNINodeError then says why.
	CNINode      *CNINode
	CNINodeError *document.NodeError
}

// CNINode is a node's.
type CNINode = document.NodeCNINode

// CNINodeFeature is a feature of a CNINode.
type CNINodeFeature = document.CNINodeFeature

// Bounds of what Kubernetes is asked for by a Detail. The newest are kept.
const (
	MaxKubeEvents     = 500
	MaxContainerLines = 1000
	MaxContainerBytes = 256 << 10
)

// KubeEvent is an event of Kubernetes about the CNI's doings.
type KubeEvent struct {
	Namespace string    `json:"namespace"` // of the event
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	At        time.Time `json:"at"` // the last time
	Count     int       `json:"count"`
	Type      string    `json:"type"` // Normal, Warning
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Kind      string    `json:"kind"`   // of the object: Pod, Node, CNINode
	Object    string    `json:"object"` // namespace/name, or name
	Node      string    `json:"node"`   // that it happened on; "" = not known
	Source    string    `json:"source"` // component that reports it
}

// ContainerLogQuery chooses lines of a container's log; zero: the newest
// introspect.DefaultLogLines.
type ContainerLogQuery struct {
	Lines    int       // the newest ones, 1 to MaxContainerLines
	Since    time.Time // those not older; zero = all
	Previous bool      // of the run before the last restart
}

// ContainerLog is what a daemon's container wrote, oldest first.
type ContainerLog struct {
	Namespace string
	Pod       string
	Container string
	Lines     []ContainerLine
	Truncated bool // a bound was met: there was more
}

// ContainerLine is one line, as it was written.
type ContainerLine struct {
	At   time.Time // by the node's clock; zero: unknown
	Text string
}

// Pod is a pod as Kubernetes lists it.
type Pod struct {
	introspect.PodRef
	Node        string     `json:"-"` // "" = it is bound to none, or the node that was asked
	Phase       string     `json:"phase"`
	HostNetwork bool       `json:"hostNetwork,omitempty"`
	IPs         []string   `json:"ips,omitempty"`
	Wants       bool       `json:"wants,omitempty"`  // it asks for vpc.amazonaws.com/pod-eni
	PodENI      string     `json:"podEni,omitempty"` // its annotation vpc.amazonaws.com/pod-eni, "" = none
	Reason      string     `json:"reason,omitempty"` // why it does not run, as its status or newest event says
	StartedAt   *time.Time `json:"startedAt,omitempty"`
}

// Stats say how the reading goes.
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
	Problem     string    // why the list of nodes, or the API server, cannot be had and what to do, in one line; "" = it can
	ProblemAt   time.Time // since when; zero: never
	RetryAt     time.Time // while the API server is unreachable: when it is tried again, past while it is being tried; else zero
	Swept       bool      // nodes are known, and every one was read once; until then reading may take more than its steady share of the processor
}

// Outage reports that the API server is unreachable: values are those read before ProblemAt.
func (s Stats) Outage() bool { return !s.RetryAt.IsZero() }
