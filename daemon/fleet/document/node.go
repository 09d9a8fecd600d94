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
	Name string `json:"name" null:"never"` // name of the object
}

// ListMeta is the standard metadata of a Kubernetes list.
type ListMeta struct {
	ResourceVersion string `json:"resourceVersion" null:"never"` // always empty: nothing is stored
}

// NodeIPAM is what is known about one node.
type NodeIPAM struct {
	APIVersion     string               `json:"apiVersion" null:"never"` // version of the document
	Kind           string               `json:"kind" null:"never"`       // NodeIPAM
	Metadata       ObjectMeta           `json:"metadata"`                // the node's name
	State          State                `json:"state" null:"never"`      // live, stale, metrics-only, api-only, unreachable, forbidden, no-daemon
	Source         string               `json:"source"`                  // what was read: summary, v1, metrics; empty if nothing was read
	SampledAt      *time.Time           `json:"sampledAt"`               // when the summary was taken, by the node's clock; null while unreachable
	LatencySeconds *float64             `json:"latencySeconds"`          // latency of the answer; null while unreachable
	Error          *NodeError           `json:"error"`                   // why the node, or a part of it, could not be read; null if nothing is wrong
	Summary        *introspect.Summary  `json:"summary"`                 // the node's pool; null while unreachable
	ENIs           []introspect.NodeENI `json:"enis"`                    // its ENIs; null if not requested

	Via    string      `json:"via"`    // how it was read: direct, port-forward, exec, proxy, record; empty if nothing was read
	Object *NodeObject `json:"object"` // the Node object; null if it was not read

	Use *NodeUse `json:"use,omitempty"` // usage according to Kubernetes; only in cnictl node show, for a node whose daemon does not answer
}

// NodeDocument is a node as cnictl prints it, with its problems.
type NodeDocument struct {
	NodeIPAM
	Status   string    `json:"status" null:"never"` // one word: ok, over-warm, or the code of the worst problem; the state if the node could not be read; unread if it was not read yet
	Problems []Problem `json:"problems"`            // worst first; empty if nothing is wrong
}

// NodeUse is the usage of a node according to Kubernetes.
type NodeUse struct {
	Pods           *int         `json:"pods"`           // pods on the node that have not ended, including those in the host network; null if unknown
	PodENIRequests *int         `json:"podENIRequests"` // of these, pods that request vpc.amazonaws.com/pod-eni; null if unknown
	Waiting        *int         `json:"waiting"`        // pods that need an address and have none yet; null if unknown
	CNINode        *NodeCNINode `json:"cniNode"`        // the node's CNINode; null if none or unknown
	Reason         string       `json:"reason"`         // why something is unknown; empty if nothing is
}

// NodeCNINode is a node's CNINode, through which the VPC resource controller and the daemon
// communicate.
type NodeCNINode struct {
	Name     string           `json:"name" null:"never"` // name of the object: the node's name
	Features []CNINodeFeature `json:"features"`          // in the order of the object
}

// CNINodeFeature is a feature of a CNINode.
type CNINodeFeature struct {
	Name  string `json:"name" null:"never"` // SecurityGroupsForPods or CustomNetworking
	Value string `json:"value"`             // value of the feature; empty if none
}

// NodeObject is a node in the Kubernetes API. Unknown values are null (in Go, empty or nil).
type NodeObject struct {
	Zone          string            `json:"zone"`          // availability zone
	InstanceType  string            `json:"instanceType"`  // such as m5.large
	InstanceID    string            `json:"instanceId"`    // i-…, from the provider id
	OS            string            `json:"os"`            // linux, windows
	Architecture  string            `json:"architecture"`  // amd64, arm64
	InternalIP    string            `json:"internalIp"`    // the node's own address
	CreatedAt     *time.Time        `json:"createdAt"`     // creation time of the Node object
	Ready         *bool             `json:"ready"`         // the node is ready; null if Kubernetes does not know
	Unschedulable bool              `json:"unschedulable"` // cordoned
	MaxPods       *int              `json:"maxPods"`       // status.capacity.pods; null if unknown
	BranchENIs    *int              `json:"branchEnis"`    // status.capacity of vpc.amazonaws.com/pod-eni; null if none
	Labels        map[string]string `json:"labels"`        // labels of the Node object
	Daemon        *DaemonPod        `json:"daemon"`        // the aws-node pod on the node; null if there is none

	// What the doctor reads of it beside the above. Earlier versions have none of it.

	Taints                []Taint           `json:"taints,omitempty"`                // taints of the node
	Conditions            []Condition       `json:"conditions,omitempty"`            // conditions that are not as on a sound node
	Annotations           map[string]string `json:"annotations,omitempty"`           // annotations of AWS, such as k8s.amazonaws.com/eniConfig
	AllocatablePods       *int              `json:"allocatablePods,omitempty"`       // status.allocatable.pods
	AllocatableBranchENIs *int              `json:"allocatableBranchEnis,omitempty"` // status.allocatable of vpc.amazonaws.com/pod-eni
	KubeletVersion        string            `json:"kubeletVersion,omitempty"`        // version of kubelet
	OSImage               string            `json:"osImage,omitempty"`               // operating system with its version
	Kernel                string            `json:"kernelVersion,omitempty"`         // version of the kernel
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key" null:"never"`    // such as node.kubernetes.io/unschedulable
	Value  string `json:"value"`               // value of the taint; empty if none
	Effect string `json:"effect" null:"never"` // NoSchedule, PreferNoSchedule, NoExecute
}

// Condition is a condition of a node.
type Condition struct {
	Type    string    `json:"type" null:"never"`   // such as Ready, NetworkingReady, DiskPressure
	Status  string    `json:"status" null:"never"` // True, False, Unknown
	Reason  string    `json:"reason"`              // a word
	Message string    `json:"message"`             // a sentence
	Since   time.Time `json:"since"`               // when its status last changed; null if unknown
}

// DaemonPod is the aws-node pod of a node.
type DaemonPod struct {
	Namespace string     `json:"namespace" null:"never"` // such as kube-system
	Name      string     `json:"name" null:"never"`      // such as aws-node-x7k2p
	UID       string     `json:"uid"`                    // UID of the pod; another pod may serve other paths
	Phase     string     `json:"phase"`                  // Pending, Running, …
	Ready     bool       `json:"ready"`                  // all its containers are ready
	Restarts  int        `json:"restarts"`               // sum over its containers
	Image     string     `json:"image"`                  // image of the aws-node container
	StartedAt *time.Time `json:"startedAt"`              // start time of the pod
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
	Node    string            `json:"node,omitempty"`       // node name; omitted where the context names the node
	Reason  introspect.Reason `json:"reason" null:"never"`  // a stable word
	Message string            `json:"message" null:"never"` // one sentence
}

// NodeIPAMList is a sweep over nodes, in the order of the targets.
type NodeIPAMList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // NodeIPAMList
	Items      []NodeIPAM  `json:"items"`                   // in the order of the targets
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // end of the sweep
}

// NodeDocumentList is what cnictl nodes shows.
type NodeDocumentList struct {
	APIVersion string         `json:"apiVersion" null:"never"` // version of the document
	Kind       string         `json:"kind" null:"never"`       // NodeIPAMList
	Metadata   ListMeta       `json:"metadata"`                // standard Kubernetes list metadata
	Items      []NodeDocument `json:"items"`                   // in the order of the targets
	Partial    bool           `json:"partial"`                 // some node could not be read
	Errors     []NodeError    `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time      `json:"sampledAt"`               // end of the sweep
}
