package cluster

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/fleet/watch"
)

// Defaults of Config.
const (
	DefaultNamespace = "kube-system"
	DefaultSelector  = "k8s-app=aws-node"
	DefaultPort      = 61679 // of the daemon's introspection server
	DefaultContainer = "aws-node"
)

// Ways for Config.Via, beside those of introspect: Auto is port-forward.
const ViaAuto = "auto"

// Config of a Cluster. Rest and Now are required.
type Config struct {
	Rest         *rest.Config // its time limit is not used, its rate limit is set
	Namespace    string       // of the DaemonSet; "" = DefaultNamespace
	Selector     string       // of its pods; "" = DefaultSelector
	NodeSelector string       // labels of nodes; "" = all
	Nodes        []string     // names of nodes; nil = all
	Via          string       // auto, port-forward, exec, proxy; "" = auto
	Tunnel       tunnel.Options
	UserAgent    string
	Now          func() time.Time
}

// Error is a failure with its reason.
type Error = tunnel.Error

// Pod is a pod as Kubernetes tells of it.
type Pod = watch.Pod

// Cluster reads one cluster. It is safe for concurrent use.
type Cluster struct{}

var errUnbuilt = errors.New("not built")

// Connect builds the clients; it does not connect.
func Connect(cfg Config) (*Cluster, error) { return &Cluster{}, nil }

// Close ends idle connections.
func (c *Cluster) Close() {}

// Requests counts the requests made to the API server, tunnels included.
func (c *Cluster) Requests() uint64 { return 0 }

// Tunnels makes streams to pods of this cluster.
func (c *Cluster) Tunnels() *tunnel.Dialer { return nil }

// Targets lists the nodes and the daemon's pods once. The nodes are in the order of their
// names.
func (c *Cluster) Targets(ctx context.Context) ([]fleet.Target, error) { return nil, errUnbuilt }

// Watch tells of every target, and of each again when it changes, until ctx ends or the
// API server refuses what no waiting mends (forbidden, credential). Calls are made by one
// goroutine at a time.
func (c *Cluster) Watch(ctx context.Context, put func(fleet.Target), remove func(name string)) error {
	return errUnbuilt
}

// Pods lists the pods of a node, by namespace and name.
func (c *Cluster) Pods(ctx context.Context, node string) ([]Pod, error) { return nil, errUnbuilt }

// Pod reads one pod, and the node that it is on.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (_ Pod, node string, _ error) {
	return Pod{}, "", errUnbuilt
}

// EventQuery narrows events; the zero value is all that concern the CNI.
type EventQuery struct {
	Node      string // of what the event is about, or that tells it
	Namespace string // "" = all
	Since     time.Time
}

// Event is a Kubernetes event about the CNI's doings.
type Event struct {
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
	Source    string    `json:"source"` // component that tells it
}

// Events lists the events about the CNI, oldest first.
func (c *Cluster) Events(ctx context.Context, q EventQuery) ([]Event, error) { return nil, errUnbuilt }

// WatchEvents tells of the events that there are and of those to come, until ctx ends or
// the API server refuses them.
func (c *Cluster) WatchEvents(ctx context.Context, q EventQuery, tell func(Event)) error {
	return errUnbuilt
}

// LogOptions narrow the log of a container.
type LogOptions struct {
	Container string        // "" = DefaultContainer
	Follow    bool          // until ctx ends
	Previous  bool          // of the run before
	Since     time.Duration // 0 = all
	Tail      int           // lines; 0 = all
}

// DaemonLogs reads the log of a daemon's pod.
func (c *Cluster) DaemonLogs(ctx context.Context, pod tunnel.Pod, o LogOptions) (io.ReadCloser, error) {
	return nil, errUnbuilt
}

// CNINode is what is used of a node's CNINode.
type CNINode struct {
	Name     string    `json:"name"`
	Features []Feature `json:"features"`
}

// Feature of a CNINode.
type Feature struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CNINode reads a node's; ok is false when it has none.
func (c *Cluster) CNINode(ctx context.Context, node string) (_ CNINode, ok bool, _ error) {
	return CNINode{}, false, errUnbuilt
}

// Rule is a right in Kubernetes' RBAC.
type Rule struct {
	Verb      string // get
	Group     string // "" = core
	Resource  string // pods/portforward
	Namespace string // "" = all
	For       string // what it is for
	Allowed   bool
}

// Access is what the user may read.
type Access struct{ Rules []Rule }

// Missing are the rules that the user lacks.
func (a Access) Missing() []Rule { return nil }

// Check asks the API server what the user may.
func (c *Cluster) Check(ctx context.Context) (Access, error) { return Access{}, errUnbuilt }

// Daemon is where a target's daemon runs, of its Object.
func Daemon(o *introspect.NodeObject) (tunnel.Pod, bool) {
	if o == nil || o.Daemon == nil {
		return tunnel.Pod{}, false
	}
	return tunnel.Pod{Namespace: o.Daemon.Namespace, Name: o.Daemon.Name}, true
}
