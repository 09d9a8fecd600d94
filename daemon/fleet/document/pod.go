package document

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// PodReport is what cnictl pod shows: where the address of a pod came from, or why it
// has none.
type PodReport struct {
	APIVersion string                   `json:"apiVersion" null:"never"` // version of the document
	Kind       string                   `json:"kind" null:"never"`       // PodReport
	Pod        introspect.PodRef        `json:"pod"`                     // the requested pod
	Node       string                   `json:"node"`                    // it is bound to; empty: none, or unknown
	State      string                   `json:"state" null:"never"`      // as in NodePodList
	Verdict    string                   `json:"verdict" null:"never"`    // the whole in one sentence
	Kubernetes *KubernetesPod           `json:"kubernetes"`              // null: it was not asked, or has no such pod
	Interfaces []ReportedIface          `json:"interfaces"`              // addresses that the daemon gave; null when unknown
	Branch     *BranchInterface         `json:"branch"`                  // null: it has no branch ENI
	Failures   []introspect.Failure     `json:"failures"`                // failed ADDs of the pod, newest first; null when unknown
	Blocked    []introspect.BlockedCard `json:"blocked"`                 // why an ADD would get nothing now; null when unknown
	Waiting    *int                     `json:"waiting"`                 // ADDs that wait on the node; null when unknown
	Timeline   []TimelineItem           `json:"timeline"`                // oldest first
	Partial    bool                     `json:"partial"`                 // something could not be read
	Errors     []NodeError              `json:"errors"`                  // what could not be read
	SampledAt  time.Time                `json:"sampledAt"`               // end of the reading
}

// KubernetesPod is a pod in the Kubernetes API.
type KubernetesPod struct {
	Phase        string     `json:"phase"`        // Pending, Running, …
	IPs          []string   `json:"ips"`          // of its status
	HostNetwork  bool       `json:"hostNetwork"`  // it uses the node's own address
	WantsBranch  bool       `json:"wantsBranch"`  // it asks for vpc.amazonaws.com/pod-eni
	Reason       string     `json:"reason"`       // why it does not run; empty: it does, or unknown
	StartedAt    *time.Time `json:"startedAt"`    // null: not yet
	PodENIText   string     `json:"podEni"`       // the annotation vpc.amazonaws.com/pod-eni; empty: none
	BranchReason string     `json:"branchReason"` // what is wrong with the annotation; empty: nothing
}

// ReportedIface is an address that the daemon gave, with its state of the pool.
type ReportedIface struct {
	introspect.PodInterface
	CIDR netip.Prefix `json:"cidr"` // the secondary IP or prefix it belongs to; empty: unknown
}

// BranchInterface is the branch ENI of a pod, from its annotation.
type BranchInterface struct {
	ENIID          string       `json:"eniId" null:"never"` // eni-…
	TrunkENIID     string       `json:"trunkEniId"`         // it hangs on; empty: unknown
	VLAN           int          `json:"vlan"`               // tag on the trunk
	MAC            string       `json:"mac"`                // lower-case colon form
	IPv4           netip.Addr   `json:"ipv4"`               // empty: none
	IPv4Subnet     netip.Prefix `json:"ipv4Subnet"`         // empty: none
	IPv6           netip.Addr   `json:"ipv6"`               // empty: none
	IPv6Subnet     netip.Prefix `json:"ipv6Subnet"`         // empty: none
	Association    string       `json:"association"`        // trunk-assoc-…; empty: not reported
	SecurityGroups []string     `json:"securityGroups"`     // of the policies that select the pod; null when unknown
}

// Sources of a TimelineItem.
const (
	FromDaemon     = "daemon"
	FromKubernetes = "kubernetes"
)

// TimelineItem is one thing that happened to a pod.
type TimelineItem struct {
	At      time.Time `json:"at"`                   // when; of repeated ones the last time
	From    string    `json:"from" null:"never"`    // daemon or kubernetes
	What    string    `json:"what" null:"never"`    // kind of event, or reason of the Kubernetes event
	Message string    `json:"message" null:"never"` // one sentence
	Count   int       `json:"count"`                // of the times that it happened
	Warning bool      `json:"warning"`              // something went wrong
}
