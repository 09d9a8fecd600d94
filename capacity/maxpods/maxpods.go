package maxpods

import (
	"slices"

	"cnictl/capacity/limits"
)

// Unlimited represents the 2^48 addresses of an IPv6 node: more than any max-pods.
const Unlimited = 1<<31 - 1

// Input describes a node. The zero value of a field means upstream's default.
type Input struct {
	InstanceType string
	Table        limits.Table // zero: the built-in one
	// Instance gives the facts of a type that the table lacks, as EC2 reports them; nil to
	// use only the table.
	Instance *limits.Instance
	VCPUs    int // 0 to use the table's

	MaxPods int // the node's status.capacity.pods; 0 if unknown: no verdict

	MaxENI           int  // MAX_ENI; not set if below 1
	PrefixDelegation bool // ENABLE_PREFIX_DELEGATION
	CustomNetworking bool // AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG
	PodENI           bool // ENABLE_POD_ENI
	MultiNIC         bool // ENABLE_MULTI_NIC
	StatedENIs       int  // what EC2 attaches to the default card, having refused more; not set if below 1
	StatedSlots      int  // secondary IPs or prefixes that EC2 puts on an ENI, having refused more; not set if below 1
	IPv6             bool
	CNI              Version // zero: a current one

	TrunkAttached bool // a trunk ENI is attached
	// NoTrunkSlot means that no slot is kept for a trunk: every one was taken before
	// ENABLE_POD_ENI was switched on, or the daemon has given up waiting for the trunk.
	NoTrunkSlot     bool
	UnmanagedENIs   int  // on the default card: no_manage, EFA-only, and untagged ones if those are not managed
	ExcludedENIs    int  // on the default card, in subnets tagged kubernetes.io/role/cni=0; the primary too
	PrimaryExcluded bool // the primary is one of them
	// LeftoverSlots counts slots that hold an address or prefix of the other mode and so
	// nothing of the active mode.
	LeftoverSlots int
	EFAOnlyCards  []int // cards whose only interface is EFA-only

	HostPods   *int // pods in the host's network, counted; nil: two, by convention
	BranchENIs *int // the node's capacity of vpc.amazonaws.com/pod-eni; nil: the table's
	BranchPods *int // pods with a branch ENI, counted; nil if unknown
}

// Version is a release of the VPC CNI.
type Version struct{ Major, Minor int }

// Verdict compares a node's max-pods with its addresses.
type Verdict string

const (
	NoVerdict   Verdict = ""             // max-pods is unknown
	OK          Verdict = "OK"           // between the recommended value and the capacity
	Over        Verdict = "OVER"         // pods can be scheduled that get no address
	Under       Verdict = "UNDER"        // addresses can never be used
	UnknownType Verdict = "UNKNOWN TYPE" // no facts; the numbers are kubelet's default
)

// Word is the verdict as documents write it: ok, over, under, or unknown if max-pods or
// the type is unknown.
func (v Verdict) Word() string {
	switch v {
	case OK:
		return "ok"
	case Over:
		return "over"
	case Under:
		return "under"
	}
	return "unknown"
}

// Source is where the facts of the type come from.
type Source string

const (
	FromTable   Source = "instance table"
	FromEC2     Source = "EC2 DescribeInstanceTypes"
	FromDefault Source = "kubelet's default"
)

// Result is the outcome; Terms shows how it was computed.
type Result struct {
	InstanceType string
	Source       Source
	Suggestions  []string // known types with a similar name, for an unknown one

	Interfaces  int // interfaces that serve pods
	SlotsPerENI int
	PerSlot     int // addresses per slot: 1, or 16 in prefix mode
	PodIPs      int // addresses for pods; Unlimited with IPv6
	BranchENIs  int // pods with a branch ENI
	HostPods    int

	IPCapacity    int // pods that can run without branch ENIs
	TotalCapacity int
	Recommended   int // the capacity, capped by EKS's convention; 0 if the vCPUs, and so the cap, are unknown
	MaxPods       int // as given

	Verdict Verdict
	// Short counts the pods that can be scheduled but get no address.
	Short int
	// Stranded counts the addresses and branch ENIs that max-pods leaves unused.
	Stranded int
	// Exposed counts the pods without a branch ENI that can be scheduled beyond the
	// addresses of a node with branch ENIs. Above 0 the node is at risk, whatever the
	// Verdict.
	Exposed int
	// KubeReservedMiB is the memory that EKS AMIs reserve for the judged max-pods (the
	// recommended one if none is known); 0 if neither is known.
	KubeReservedMiB int

	Cards []CardCost // further cards that get their own pool
	Notes []string   // what a person should know besides the numbers

	terms []Term
}

// CardCost is what the pool of a further network card holds on an idle node.
type CardCost struct {
	Card       int
	Interfaces int // each has a primary address
	Addresses  int // in addition to those; Unlimited with IPv6: a /80
}

// Term is one term of the computation.
type Term struct {
	Name   string // "E", "trunk", "ip", …
	Value  int
	Reason string
}

// Terms returns every term in the order of the computation.
func (r Result) Terms() []Term { return slices.Clone(r.terms) }

// Compute applies the rule: addresses first, then the cap.
func Compute(in Input) Result {
	c := computation{in: in, r: Result{InstanceType: in.InstanceType, MaxPods: in.MaxPods}}
	if !c.facts() {
		return c.unknown()
	}
	c.size()
	c.branches()
	c.host()
	c.capacity()
	c.cards()
	c.judge()
	return c.r
}
