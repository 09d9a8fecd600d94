package document

import (
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
)

// State says how much is known about a node.
type State string

const (
	StateLive        State = "live"        // it answered
	StateUnreachable State = "unreachable" // no connection, no timely answer, or an unusable one
	StateForbidden   State = "forbidden"   // connecting was not allowed

	// StateStale: it answered before but does not now. Its last answer is shown.
	StateStale State = "stale"
	// StateMetricsOnly: only its metrics could be read. The summary holds what they contain.
	StateMetricsOnly State = "metrics-only"
	// StateAPIOnly: it has not been read yet, or cannot be. Only its Kubernetes object is known.
	StateAPIOnly State = "api-only"
	// StateNoDaemon: no aws-node pod runs there, as on Fargate and Windows.
	StateNoDaemon State = "no-daemon"
)

// How a node was reached.
const (
	ViaDirect      = "direct"       // a socket or an address given by the caller
	ViaPortForward = "port-forward" // a stream through the API server and the kubelet
	ViaExec        = "exec"         // a program run in the daemon's container
	ViaProxy       = "proxy"        // the API server's proxy to the pod
	ViaRecord      = "record"       // a recording
)

// Sources of a NodeIPAM.
const (
	SourceSummary = "summary" // our daemon's /v1/summary
	SourceV1      = "v1"      // upstream's documents; much is then null
	SourceMetrics = "metrics" // the daemon's metrics; more is then null
)

// ObjectMeta names an object.
type ObjectMeta struct {
	Name string `json:"name" null:"never"` // of the object
}

// ListMeta is what lists of Kubernetes have as their metadata.
type ListMeta struct {
	ResourceVersion string `json:"resourceVersion" null:"never"` // always empty: nothing is kept
}

// NodeIPAM is what is known of one node.
type NodeIPAM struct {
	APIVersion     string               `json:"apiVersion" null:"never"` // version of the document
	Kind           string               `json:"kind" null:"never"`       // NodeIPAM
	Metadata       ObjectMeta           `json:"metadata"`                // the node's name
	State          State                `json:"state" null:"never"`      // live, stale, metrics-only, api-only, unreachable, forbidden, no-daemon
	Source         string               `json:"source"`                  // "" while unreachable
	SampledAt      *time.Time           `json:"sampledAt"`               // when the summary was taken, by the node's clock; null while unreachable
	LatencySeconds *float64             `json:"latencySeconds"`          // of the answer; null while unreachable
	Error          *NodeError           `json:"error"`                   // why it, or a part of it, could not be read; null: nothing is wrong
	Summary        *introspect.Summary  `json:"summary"`                 // its pool; null while unreachable
	ENIs           []introspect.NodeENI `json:"enis"`                    // null: not requested

	Via    string      `json:"via"`    // direct, port-forward, exec, proxy, record; "" while nothing was read
	Object *NodeObject `json:"object"` // the Node object; null: it was not read

	Use *NodeUse `json:"use,omitempty"` // its use according to Kubernetes; only in cnictl node show of a node whose daemon does not answer
}

// NodeDocument is a node as cnictl prints it: with what is wrong.
type NodeDocument struct {
	NodeIPAM
	Status   string    `json:"status" null:"never"` // one word: ok, over-warm, the code of the worst problem, or as state where the node could not be read; unread: not yet asked
	Problems []Problem `json:"problems"`            // worst first; none: nothing is wrong
}

// NodeUse is the use of a node according to Kubernetes.
type NodeUse struct {
	Pods           *int         `json:"pods"`           // on the node that have not ended, those of the host's network too; null: unknown
	PodENIRequests *int         `json:"podENIRequests"` // of the pods, those that request vpc.amazonaws.com/pod-eni; null: unknown
	Waiting        *int         `json:"waiting"`        // pods that have no address yet and should get one; null: unknown
	CNINode        *NodeCNINode `json:"cniNode"`        // null: the node has none, or it is unknown
	Reason         string       `json:"reason"`         // why something is unknown; empty: nothing is
}

// NodeCNINode is a node's CNINode, through which the VPC resource controller and the daemon
// communicate.
type NodeCNINode struct {
	Name     string           `json:"name" null:"never"` // of the object: the node's
	Features []CNINodeFeature `json:"features"`          // in its order
}

// CNINodeFeature is a feature of a CNINode.
type CNINodeFeature struct {
	Name  string `json:"name" null:"never"` // SecurityGroupsForPods or CustomNetworking
	Value string `json:"value"`             // of the feature; empty: none
}

// NodeObject is a node in the Kubernetes API. An empty string means unknown.
type NodeObject struct {
	Zone          string            `json:"zone"`          // availability zone
	InstanceType  string            `json:"instanceType"`  // m5.large
	InstanceID    string            `json:"instanceId"`    // i-…, of the provider id
	OS            string            `json:"os"`            // linux, windows
	Architecture  string            `json:"architecture"`  // amd64, arm64
	InternalIP    string            `json:"internalIp"`    // the node's own address
	CreatedAt     *time.Time        `json:"createdAt"`     // of the Node object
	Ready         *bool             `json:"ready"`         // null: Kubernetes does not know
	Unschedulable bool              `json:"unschedulable"` // cordoned
	MaxPods       *int              `json:"maxPods"`       // status.capacity.pods
	BranchENIs    *int              `json:"branchEnis"`    // status.capacity of vpc.amazonaws.com/pod-eni
	Labels        map[string]string `json:"labels"`        // of the Node object
	Daemon        *DaemonPod        `json:"daemon"`        // null: no aws-node pod is on the node
}

// DaemonPod is the aws-node pod of a node.
type DaemonPod struct {
	Namespace string     `json:"namespace" null:"never"` // kube-system
	Name      string     `json:"name" null:"never"`      // aws-node-x7k2p
	UID       string     `json:"uid"`                    // of this pod: another one may know other paths
	Phase     string     `json:"phase"`                  // Pending, Running, …
	Ready     bool       `json:"ready"`                  // all its containers are
	Restarts  int        `json:"restarts"`               // of all its containers
	Image     string     `json:"image"`                  // of the aws-node container
	StartedAt *time.Time `json:"startedAt"`              // of the pod
}

// Tag returns the tag of the image, else the beginning of its digest; "" if it has neither.
func (d DaemonPod) Tag() string {
	name, digest, _ := strings.Cut(d.Image, "@")
	if _, tag, ok := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":"); ok {
		return tag
	}
	const enough = len("sha256:") + 12
	return digest[:min(enough, len(digest))]
}

// DaemonVersion returns the version that the node's daemon reports, else the tag of its image,
// which is all that upstream shows; "" if neither is known.
func (n NodeIPAM) DaemonVersion() string {
	switch {
	case n.Summary != nil && n.Summary.Version != "":
		return n.Summary.Version
	case n.Object != nil && n.Object.Daemon != nil:
		return n.Object.Daemon.Tag()
	}
	return ""
}

// NodeError says why a node, or a part of it, could not be read.
type NodeError struct {
	Node    string            `json:"node,omitempty"`       // omitted where the error is listed with its node
	Reason  introspect.Reason `json:"reason" null:"never"`  // a stable word
	Message string            `json:"message" null:"never"` // one sentence
}

// NodeIPAMList is a sweep over nodes, in the order of the targets.
type NodeIPAMList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // NodeIPAMList
	Items      []NodeIPAM  `json:"items"`                   // in the order of the targets
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // of the nodes that could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // end of the sweep
}

// NodeDocumentList is what cnictl nodes shows.
type NodeDocumentList struct {
	APIVersion string         `json:"apiVersion" null:"never"` // version of the document
	Kind       string         `json:"kind" null:"never"`       // NodeIPAMList
	Metadata   ListMeta       `json:"metadata"`                // as lists of Kubernetes have
	Items      []NodeDocument `json:"items"`                   // in the order of the targets
	Partial    bool           `json:"partial"`                 // some node could not be read
	Errors     []NodeError    `json:"errors"`                  // of the nodes that could not be read
	SampledAt  time.Time      `json:"sampledAt"`               // end of the sweep
}
