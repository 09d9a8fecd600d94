package document

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// Kinds of documents about the subnets and trunks of a fleet.
const (
	KindSubnetList = "SubnetList"
	KindSubnetMap  = "SubnetMap"
	KindTrunkList  = "TrunkList"
)

// SubnetList is what cnictl subnets shows.
type SubnetList struct {
	APIVersion string       `json:"apiVersion" null:"never"` // version of the document
	Kind       string       `json:"kind" null:"never"`       // SubnetList
	Metadata   ListMeta     `json:"metadata"`                // as lists of Kubernetes have
	Items      []SubnetItem `json:"items"`                   // by id
	Partial    bool         `json:"partial"`                 // the counts lack the nodes that could not be read
	Errors     []NodeError  `json:"errors"`                  // of the nodes that could not be read
	SampledAt  time.Time    `json:"sampledAt"`               // end of the sweep
}

// SubnetItem is a subnet as the nodes that were read see it.
type SubnetItem struct {
	ID              string     `json:"id" null:"never"` // subnet-…
	Zone            string     `json:"zone"`            // of its nodes; empty when unknown
	CIDR            string     `json:"cidr"`            // its IPv4 range; empty when unknown
	Usable          *int       `json:"usable"`          // addresses that the range gives; null when the range is unknown
	Available       *int       `json:"available"`       // free addresses by EC2's last count
	AsOf            *time.Time `json:"asOf"`            // time of that count
	Held            int        `json:"held"`            // addresses that nodes hold, their ENIs' own included
	Wasted          int        `json:"wasted"`          // of these no pod has or had
	Others          *int       `json:"others"`          // taken by others than the nodes read; null when unknown
	FreeBlocks      *int       `json:"freeBlocks"`      // /28s that may be free, at most; null without a map
	SpoiledBlocks   *int       `json:"spoiledBlocks"`   // /28s in which single addresses forbid a prefix; null without a map
	Nodes           int        `json:"nodes"`           // that have ENIs there or may make them
	ENIs            int        `json:"enis"`            // there
	Readings        int        `json:"readings"`        // counts of EC2 that the change is made of
	ChangePerHour   *float64   `json:"changePerHour"`   // addresses; null: measured too shortly
	MeasuredSeconds *float64   `json:"measuredSeconds"` // from the first to the last count
	LeftSeconds     *float64   `json:"leftSeconds"`     // until it is empty as measured; null: nothing can be said
}

// Uses of a /28 of a subnet.
const (
	BlockUnknown  = "unknown"  // free, or used by others
	BlockPrefix   = "prefix"   // a prefix of a node
	BlockSpoiled  = "spoiled"  // single addresses of nodes: it cannot become a prefix
	BlockPrimary  = "primary"  // a node's own address
	BlockReserved = "reserved" // contains addresses reserved by EC2
)

// SubnetMap is what cnictl subnets shows of one subnet.
type SubnetMap struct {
	APIVersion string `json:"apiVersion" null:"never"` // version of the document
	Kind       string `json:"kind" null:"never"`       // SubnetMap
	SubnetItem
	Blocks    []SubnetBlock `json:"blocks"`    // all of the range, by address; none when the range is unknown
	Partial   bool          `json:"partial"`   // the counts lack the nodes that could not be read
	Errors    []NodeError   `json:"errors"`    // of the nodes that could not be read
	SampledAt time.Time     `json:"sampledAt"` // end of the sweep
}

// SubnetBlock is one /28 of a subnet.
type SubnetBlock struct {
	Prefix netip.Prefix `json:"prefix" null:"never"` // the block
	Use    string       `json:"use" null:"never"`    // unknown, prefix, spoiled, primary, reserved
	Held   int          `json:"held"`                // addresses of nodes in it
	Used   int          `json:"used"`                // of these pods have
	Node   string       `json:"node"`                // that has some; empty: none
}

// States of a node with security groups for pods.
const (
	TrunkAttached    = "attached"
	TrunkAwaited     = "awaited"     // on, supported, no trunk yet
	TrunkUnsupported = "unsupported" // on, but the instance type does not support it
	TrunkOff         = "off"         // the setting is off, but there is a trunk or branch capacity
	TrunkNotReported = "not-told"    // Kubernetes shows capacity, but the daemon reports no trunk
)

// TrunkList is what cnictl trunks shows.
type TrunkList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // TrunkList
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Items      []TrunkItem `json:"items"`                   // by node: those that have to do with branch ENIs
	Unplaced   []BranchPod `json:"unplaced"`                // pods that ask for a branch ENI and are on no node; none also when not asked
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // of the nodes that could not be read, or whose pods could not
	SampledAt  time.Time   `json:"sampledAt"`               // end of the sweep
}

// TrunkItem is a node with a trunk, or that should have one.
type TrunkItem struct {
	Node         string      `json:"node" null:"never"`  // its name
	InstanceType string      `json:"instanceType"`       // empty when unknown
	Zone         string      `json:"zone"`               // empty when unknown
	State        string      `json:"state" null:"never"` // attached, awaited, unsupported, off, not-told
	ENIID        string      `json:"eniId"`              // the trunk; empty: none
	BranchUsed   *int        `json:"branchUsed"`         // branch ENIs in use; null when unknown
	BranchLimit  *int        `json:"branchLimit"`        // branch ENIs that the type can have; null when unknown
	Advertised   *int        `json:"advertised"`         // capacity of vpc.amazonaws.com/pod-eni on the Node object
	Waiting      *int        `json:"waiting"`            // pods that ask for a branch ENI and have none; null: not asked
	Cooling      *int        `json:"cooling"`            // in use beyond the pods that show one; null when unknown
	Pods         []BranchPod `json:"pods"`               // that wait, then those that have one; waiting is null when not asked
}

// BranchPod is a pod that asks for a branch ENI.
type BranchPod struct {
	introspect.PodRef
	Waiting bool       `json:"waiting"` // it has none yet
	Phase   string     `json:"phase"`   // as Kubernetes says
	Reason  string     `json:"reason"`  // why it does not run, or what is wrong with its annotation
	Since   *time.Time `json:"since"`   // when the kubelet took it
	VLAN    *int       `json:"vlan"`    // of its branch; null: none, or unknown
	ENIID   string     `json:"eniId"`   // of its branch; empty: none, or unknown
	Address string     `json:"address"` // of its branch; empty: none, or unknown
}
