package document

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// PodReport is what cnictl pod shows: where the address of a pod comes from, or why it has none.
type PodReport struct {
	APIVersion string                   `json:"apiVersion" null:"never"` // version of the document
	Kind       string                   `json:"kind" null:"never"`       // PodReport
	Pod        introspect.PodRef        `json:"pod"`                     // the requested pod
	Node       string                   `json:"node"`                    // node it is bound to; empty if none or unknown
	State      string                   `json:"state" null:"never"`      // as in NodePodList
	Verdict    string                   `json:"verdict" null:"never"`    // result in one sentence
	Finding    string                   `json:"finding"`                 // code of cnictl doctor for what keeps it from the network; empty if nothing is known to
	Kubernetes *KubernetesPod           `json:"kubernetes"`              // the pod in Kubernetes; null if it was not read or does not exist
	Interfaces []ReportedIface          `json:"interfaces"`              // addresses assigned by the daemon; null if unknown
	Branch     *BranchInterface         `json:"branch"`                  // branch ENI of the pod; null if none
	Failures   []introspect.Failure     `json:"failures"`                // failed ADDs of the pod, newest first; null if unknown
	Blocked    []introspect.BlockedCard `json:"blocked"`                 // why an ADD would get no address now; null if unknown
	Waiting    *int                     `json:"waiting"`                 // ADDs waiting on the node; null if unknown
	Timeline   []TimelineItem           `json:"timeline"`                // events of the pod, oldest first
	Partial    bool                     `json:"partial"`                 // something could not be read
	Errors     []NodeError              `json:"errors"`                  // what could not be read
	SampledAt  time.Time                `json:"sampledAt"`               // end of the reading
}

// KubernetesPod is a pod in the Kubernetes API.
type KubernetesPod struct {
	Phase        string     `json:"phase"`        // Pending, Running, …
	IPs          []string   `json:"ips"`          // addresses in its status
	HostNetwork  bool       `json:"hostNetwork"`  // it uses the node's own address
	WantsBranch  bool       `json:"wantsBranch"`  // it requests vpc.amazonaws.com/pod-eni
	Reason       string     `json:"reason"`       // why it is not running; empty if it is running or if unknown
	StartedAt    *time.Time `json:"startedAt"`    // start time of the pod; null if not started yet
	PodENIText   string     `json:"podEni"`       // annotation vpc.amazonaws.com/pod-eni; empty if none
	BranchReason string     `json:"branchReason"` // what is wrong with the annotation; empty if nothing
}

// ReportedIface is an address assigned by the daemon, with the CIDR that it belongs to.
type ReportedIface struct {
	introspect.PodInterface
	CIDR netip.Prefix `json:"cidr"` // secondary IP or prefix it belongs to; empty if unknown
}

// BranchInterface is the branch ENI of a pod, from its annotation.
type BranchInterface struct {
	ENIID          string       `json:"eniId" null:"never"` // eni-…
	TrunkENIID     string       `json:"trunkEniId"`         // trunk of the branch ENI; empty if unknown
	VLAN           int          `json:"vlan"`               // VLAN tag on the trunk
	MAC            string       `json:"mac"`                // MAC address in lower-case colon form
	IPv4           netip.Addr   `json:"ipv4"`               // IPv4 address; empty if none
	IPv4Subnet     netip.Prefix `json:"ipv4Subnet"`         // IPv4 range of the subnet; empty if none
	IPv6           netip.Addr   `json:"ipv6"`               // IPv6 address; empty if none
	IPv6Subnet     netip.Prefix `json:"ipv6Subnet"`         // IPv6 range of the subnet; empty if none
	Association    string       `json:"association"`        // association with the trunk, trunk-assoc-…; empty if not reported
	SecurityGroups []string     `json:"securityGroups"`     // security groups of the policies that select the pod; null if unknown
}

// Sources of a TimelineItem.
const (
	FromDaemon     = "daemon"
	FromKubernetes = "kubernetes"
)

// TimelineItem is one thing that happened to a pod.
type TimelineItem struct {
	At      time.Time `json:"at"`                   // time of the event; of the last one if repeated
	From    string    `json:"from" null:"never"`    // daemon or kubernetes
	What    string    `json:"what" null:"never"`    // kind of event, or reason of the Kubernetes event
	Message string    `json:"message" null:"never"` // one sentence
	Count   int       `json:"count"`                // number of occurrences
	Warning bool      `json:"warning"`              // something went wrong
}
