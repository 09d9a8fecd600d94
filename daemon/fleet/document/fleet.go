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
	Metadata   ListMeta     `json:"metadata"`                // standard Kubernetes list metadata
	Items      []SubnetItem `json:"items"`                   // sorted by id
	Partial    bool         `json:"partial"`                 // the counts exclude the nodes that could not be read
	Errors     []NodeError  `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time    `json:"sampledAt"`               // end of the sweep
}

// SubnetItem is a subnet as seen by the nodes that were read.
type SubnetItem struct {
	ID               string     `json:"id" null:"never"`  // subnet-…
	Zone             string     `json:"zone"`             // availability zone of its nodes; empty if unknown
	CIDR             string     `json:"cidr"`             // IPv4 range; empty if unknown
	Usable           *int       `json:"usable"`           // usable addresses of the range; null if the range is unknown
	Available        *int       `json:"available"`        // free addresses by EC2's last count
	AsOf             *time.Time `json:"asOf"`             // time of that count
	Held             int        `json:"held"`             // addresses held by nodes, including the ENIs' own
	Wasted           int        `json:"wasted"`           // of these, never used by a pod
	Others           *int       `json:"others"`           // addresses held by anything except the nodes read; null if unknown
	FreeBlocks       *int       `json:"freeBlocks"`       // upper bound of the free /28 blocks; null without a map
	FragmentedBlocks *int       `json:"spoiledBlocks"`    // /28 blocks that single addresses keep from becoming prefixes; null without a map
	Nodes            int        `json:"nodes"`            // nodes with ENIs there or allowed to create them
	ENIs             int        `json:"enis"`             // ENIs in the subnet
	Readings         int        `json:"readings"`         // number of EC2's counts that the trend is based on
	ChangePerHour    *float64   `json:"changePerHour"`    // addresses per hour; null if not measured long enough
	MeasuredSeconds  *float64   `json:"measuredSeconds"`  // from the first count to the last; null if not measured long enough
	LeftSeconds      *float64   `json:"leftSeconds"`      // until it is as likely empty as not; null if unknown, or too far ahead
	LeftEarlySeconds *float64   `json:"leftEarlySeconds"` // in 10 % of all cases it is empty earlier; null without a day of counts
	LeftLateSeconds  *float64   `json:"leftLateSeconds"`  // in 10 % of all cases it is empty later; null without a day of counts
	Left             string     `json:"left"`             // the same in words, such as "~14h, 4 readings"; empty if unknown
}

// Uses of a /28 of a subnet.
const (
	BlockUnknown    = "unknown"  // free, or used by others
	BlockFree       = "free"     // no address in it is in use; known only if EC2's interfaces were read
	BlockOthers     = "others"   // only others have addresses in it; only if EC2's interfaces were read
	BlockPrefix     = "prefix"   // a prefix of a node
	BlockFragmented = "spoiled"  // single addresses of nodes: it cannot become a prefix
	BlockPrimary    = "primary"  // a node's own address
	BlockReserved   = "reserved" // contains addresses reserved by EC2
)

// SubnetMap is what cnictl subnets shows for one subnet.
type SubnetMap struct {
	APIVersion string `json:"apiVersion" null:"never"` // version of the document
	Kind       string `json:"kind" null:"never"`       // SubnetMap
	SubnetItem
	Blocks     []SubnetBlock `json:"blocks"`     // all blocks of the range, by address; empty if the range is unknown
	Interfaces bool          `json:"interfaces"` // with --aws: EC2's interfaces were read, so that everything is known
	Unplaced   *int          `json:"unplaced"`   // addresses in use somewhere in the range, of others and of ENIs themselves; null if unknown
	Owners     []SubnetOwner `json:"owners"`     // with --aws: who else has addresses, most first; empty otherwise
	Freeing    *BlockFreeing `json:"freeing"`    // with --free-blocks: which nodes to terminate; null otherwise
	Partial    bool          `json:"partial"`    // the counts exclude the nodes that could not be read
	Errors     []NodeError   `json:"errors"`     // nodes that could not be read
	SampledAt  time.Time     `json:"sampledAt"`  // end of the sweep
}

// SubnetBlock is one /28 of a subnet.
type SubnetBlock struct {
	Prefix  netip.Prefix  `json:"prefix" null:"never"` // CIDR of the block
	Use     string        `json:"use" null:"never"`    // unknown, prefix, spoiled, primary, reserved; with --aws free and others instead of unknown
	Held    int           `json:"held"`                // addresses in the block held by nodes
	Used    int           `json:"used"`                // of these, in use by pods
	Node    string        `json:"node"`                // a node that holds addresses in the block; empty if none
	Holders []BlockHolder `json:"holders"`             // all nodes that hold addresses in the block
	Others  *int          `json:"others"`              // addresses in the block that others have; null without --aws
	Owners  []BlockOwner  `json:"owners"`              // these others; empty without --aws
}

// BlockHolder is a node with addresses in a /28.
type BlockHolder struct {
	Node string `json:"node" null:"never"` // name of the node
	Held int    `json:"held"`              // addresses that it holds in the block
	Used int    `json:"used"`              // of these, in use by pods
}

// BlockOwner is an interface of others with addresses in a /28.
type BlockOwner struct {
	Name      string `json:"name" null:"never"`      // whose interface it is, such as: load balancer app/shop
	Interface string `json:"interface" null:"never"` // eni-…
	Addresses int    `json:"addresses"`              // that it has in the block
}

// SubnetOwner is an owner of addresses in a subnet that is not a node.
type SubnetOwner struct {
	Name       string `json:"name" null:"never"` // such as: load balancer app/shop
	Interfaces int    `json:"interfaces"`        // number of interfaces
	Addresses  int    `json:"addresses"`         // of all interfaces
	Blocks     int    `json:"blocks"`            // /28 blocks with these addresses
}

// BlockFreeing is the smallest set of nodes whose termination frees /28 blocks of a subnet.
type BlockFreeing struct {
	Wanted       int            `json:"wanted"`       // number of blocks that were asked for
	Blocks       []netip.Prefix `json:"blocks"`       // that are free once the nodes are gone; may be more
	Nodes        []FreeingNode  `json:"nodes"`        // to drain and terminate
	Least        int            `json:"least"`        // no fewer nodes can do it
	Exact        bool           `json:"exact"`        // no smaller set exists; otherwise the time ran out, and the best set is shown
	Addresses    int            `json:"addresses"`    // of the subnet that are free once the nodes are gone
	Pods         int            `json:"pods"`         // with addresses of the nodes' pools, which move
	Warm         int            `json:"warm"`         // free addresses that the other nodes hold for them
	NewAddresses int            `json:"newAddresses"` // that the other nodes take beyond these; each may break up another block
	Steps        []FreeingStep  `json:"steps"`        // what to do, in order; nothing was done
}

// FreeingNode is a node to drain and terminate.
type FreeingNode struct {
	Node       string `json:"node" null:"never"` // name of the node
	InstanceID string `json:"instanceId"`        // i-…; empty if unknown
	Group      string `json:"group"`             // managed node group or node pool; empty if unknown
	Pods       int    `json:"pods"`              // with addresses of its pools
	Addresses  int    `json:"addresses"`         // that it has in the subnet, with those of its ENIs
}

// FreeingStep is a command for one node, with its risk.
type FreeingStep struct {
	Node string `json:"node" null:"never"` // name of the node
	CauseFix
}

// States of a node with security groups for pods.
const (
	TrunkAttached    = "attached"
	TrunkPending     = "awaited"     // on, supported, no trunk yet
	TrunkUnsupported = "unsupported" // on, but the instance type does not support it
	TrunkOff         = "off"         // the setting is off, but there is a trunk or branch capacity
	TrunkNotReported = "not-told"    // Kubernetes shows capacity, but the daemon reports no trunk
)

// TrunkList is what cnictl trunks shows.
type TrunkList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // TrunkList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Items      []TrunkItem `json:"items"`                   // nodes with a trunk, branch capacity or the setting, by node
	Unplaced   []BranchPod `json:"unplaced"`                // pods that request a branch ENI and are on no node; empty also if pods were not requested
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // nodes that could not be read, or whose pods could not
	SampledAt  time.Time   `json:"sampledAt"`               // end of the sweep
}

// TrunkItem is a node that has or should have a trunk.
type TrunkItem struct {
	Node         string      `json:"node" null:"never"`  // node name
	InstanceType string      `json:"instanceType"`       // EC2 instance type; empty if unknown
	Zone         string      `json:"zone"`               // availability zone; empty if unknown
	State        string      `json:"state" null:"never"` // attached, awaited, unsupported, off, not-told
	ENIID        string      `json:"eniId"`              // ENI of the trunk; empty if none
	BranchUsed   *int        `json:"branchUsed"`         // branch ENIs in use; null if unknown
	BranchLimit  *int        `json:"branchLimit"`        // branch ENIs that the instance type supports; null if unknown
	Advertised   *int        `json:"advertised"`         // capacity of vpc.amazonaws.com/pod-eni on the Node object; null if unknown
	Waiting      *int        `json:"waiting"`            // pods that request a branch ENI and have none; null if not requested
	Cooling      *int        `json:"cooling"`            // branch ENIs in use beyond those of pods; null if unknown
	Pods         []BranchPod `json:"pods"`               // pods waiting for a branch ENI, then those with one; not known if waiting is null
}

// BranchPod is a pod that requests a branch ENI.
type BranchPod struct {
	introspect.PodRef
	Waiting bool       `json:"waiting"` // it has no branch ENI yet
	Phase   string     `json:"phase"`   // phase in Kubernetes
	Reason  string     `json:"reason"`  // why it is not running, or what is wrong with its annotation
	Since   *time.Time `json:"since"`   // when kubelet accepted it
	VLAN    *int       `json:"vlan"`    // VLAN of its branch ENI; null if none or unknown
	ENIID   string     `json:"eniId"`   // its branch ENI; empty if none or unknown
	Address string     `json:"address"` // address of its branch ENI; empty if none or unknown
}
