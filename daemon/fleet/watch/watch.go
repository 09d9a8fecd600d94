// Package watch is what samplers and screens share: a Source with its view, the focus and
// pace, one node in detail, and statistics of the sampling. The sampler (daemon/fleet/live)
// and a recording (daemon/fleet/record) are sources; the screens know neither.
package watch

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
)

// Focus is what is on the screen.
type Focus struct {
	Open    string   // the node whose screen is open, "" = none
	Visible []string // nodes whose rows are shown, in display order
	Away    bool     // the terminal has lost focus
	// Maps: subnet maps are shown, which needs the addresses of all nodes. They cost more to
	// read than everything else; otherwise only those of the open node are read.
	Maps bool
}

// Pace is how often to sample.
type Pace struct {
	Interval time.Duration // 0 = unchanged
	Paused   bool
}

// UpstreamMin is the least time between two reads of an upstream node, whoever asks, as upstream
// logs every request.
const UpstreamMin = 10 * time.Second

// Want is a set of documents of a node.
type Want uint

const (
	WantENIs Want = 1 << iota
	WantPlan
	WantEvents
	WantFailures
	WantConfig
	WantLogs
	WantPod
	WantPods // the pods on the node according to Kubernetes
	// WantKubeEvents: Kubernetes events about the node and the pods on it that concern the CNI.
	WantKubeEvents
	// WantContainerLog: the log of the daemon's container, through Kubernetes. Together with
	// WantLogs, it is read only if the daemon does not serve its log.
	WantContainerLog
	// WantNodeUse: what Kubernetes knows about the node's usage, for a node whose daemon does
	// not answer.
	WantNodeUse
	// WantClusterPods: the pods of all nodes, and those not yet bound to a node. Detail does
	// not ask its node for them.
	WantClusterPods
)

// Query holds the parameters of documents.
type Query struct {
	Pod    introspect.PodRef    // for WantPod
	Plan   introspect.PlanQuery // for WantPlan: other targets
	Logs   introspect.LogQuery  // for WantLogs
	Events EventsAfter          // for WantEvents

	KubeEventsSince time.Time         // for WantKubeEvents; zero: all, usually an hour
	Container       ContainerLogQuery // for WantContainerLog
	Find            PodQuery          // for WantClusterPods
}

// PodQuery selects pods of a cluster; zero selects all.
type PodQuery struct {
	Namespace string     // "" = any
	Name      string     // or a prefix, if no pod has that name; "" = any
	IP        netip.Addr // address of the pod; zero = any
}

// EventsAfter is the position of a reader of events; zero is the beginning.
type EventsAfter struct {
	Epoch string
	Next  uint64
}

// Matches reports whether a pod matches, judging by that pod alone.
func (q PodQuery) Matches(p Pod) bool {
	return (q.Namespace == "" || p.Namespace == q.Namespace) && strings.HasPrefix(p.Name, q.Name) &&
		(!q.IP.IsValid() || slices.Contains(p.IPs, q.IP.String()))
}

// Detail holds documents of one node. Unwanted and unreadable ones are nil; for the latter,
// Errors says why.
type Detail struct {
	Node     string
	At       time.Time // of the read
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

// ClusterPods are the pods that Kubernetes lists.
type ClusterPods struct {
	Pods []Pod
	At   time.Time // when they were listed; zero in a recording, which lists them at several moments

	Nodes       map[string]bool // the nodes that these pods are on; nil = all nodes
	WithoutOnly bool            // only pods without an address, as there are more than MaxClusterPods
}

// MaxClusterPods limits how many pods of a cluster are listed. Above it, only those without
// an address are: the daemons list the others.
const MaxClusterPods = 20_000

// NodeUse is a node's usage as Kubernetes alone knows it: all that is known if the daemon
// does not answer.
type NodeUse struct {
	Pods    int // on the node that have not ended, including host-network pods
	Network int // of Pods, those not on the host network: each has an address or waits for one
	Branch  int // of Network, those that request vpc.amazonaws.com/pod-eni
	Waiting int // of Network, those without an address yet

	// CNINode is nil if the node has none or it may not be read; CNINodeError then says why.
	CNINode      *CNINode
	CNINodeError *document.NodeError
}

// CNINode is the CNINode object of a node.
type CNINode = document.NodeCNINode

// CNINodeFeature is a feature of a CNINode.
type CNINodeFeature = document.CNINodeFeature

// Limits on what a Detail reads from Kubernetes. The newest are kept.
const (
	MaxKubeEvents     = 500
	MaxContainerLines = 1000
	MaxContainerBytes = 256 << 10
)

// KubeEvent is a Kubernetes event about the CNI.
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

	First  time.Time `json:"first,omitzero"`   // the first time; zero in a recording of an earlier version
	Action string    `json:"action,omitempty"` // of its reporter; empty in a recording of an earlier version
}

// ContainerLogQuery selects lines of a container's log; zero selects the newest
// introspect.DefaultLogLines.
type ContainerLogQuery struct {
	Lines    int       // the newest, 1 to MaxContainerLines
	Since    time.Time // no older lines; zero = all
	Previous bool      // the log from before the last restart
}

// ContainerLog is the log of a daemon's container, oldest line first.
type ContainerLog struct {
	Namespace string
	Pod       string
	Container string
	Lines     []ContainerLine
	Truncated bool // a limit was reached: there was more
}

// ContainerLine is one unmodified line.
type ContainerLine struct {
	At   time.Time // by the node's clock; zero if unknown
	Text string
}

// Pod is a pod as Kubernetes lists it.
type Pod struct {
	introspect.PodRef
	Node        string     `json:"-"` // "" = it is bound to none, or the node that was asked
	Owner       string     `json:"-"` // its controller, KIND/NAME; "" = none. Recordings do not have it
	Phase       string     `json:"phase"`
	HostNetwork bool       `json:"hostNetwork,omitempty"`
	IPs         []string   `json:"ips,omitempty"`
	Wants       bool       `json:"wants,omitempty"`  // it asks for vpc.amazonaws.com/pod-eni
	PodENI      string     `json:"podEni,omitempty"` // its annotation vpc.amazonaws.com/pod-eni, "" = none
	Reason      string     `json:"reason,omitempty"` // why it does not run, as its status or newest event says
	StartedAt   *time.Time `json:"startedAt,omitempty"`

	// Object and Daemon, of a pod of aws-node, are what the doctor knows beside the above. They are nil
	// in lists of all nodes' pods and in recordings of earlier versions.
	Object *evidence.KubePod   `json:"object,omitempty"`
	Daemon *evidence.DaemonPod `json:"daemon,omitempty"`
}

// Stats are statistics of the sampling.
type Stats struct {
	Interval    time.Duration // between two samples of a node on the screen
	Background  time.Duration // actual time between two samples of other nodes
	Widened     bool          // Interval or Background is longer than requested: the fleet is large
	SweepTook   time.Duration // the last round over all nodes
	InFlight    int
	Tunnels     int // kept open
	Samples     uint64
	Failed      uint64
	Dropped     uint64
	LatencyP50  time.Duration
	LatencyP99  time.Duration
	APIRequests uint64
	Problem     string    // one line: why nodes or API server are unavailable, and what to do; "" if none
	ProblemAt   time.Time // when Problem began; zero = never
	RetryAt     time.Time // next attempt during an outage, past while it runs; else zero
	Swept       bool      // every node was read once; until then reading may exceed live.MaxShare
}

// Outage reports that the API server is unreachable: values date from before ProblemAt.
func (s Stats) Outage() bool { return !s.RetryAt.IsZero() }
