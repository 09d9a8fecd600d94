package introspect

import "time"

// Kinds of documents of cnictl capacity.
const (
	KindCapacityTypeList   = "CapacityTypeList"
	KindCapacitySubnetList = "CapacitySubnetList"
)

// CapacityTypeList is what cnictl capacity type shows.
type CapacityTypeList struct {
	APIVersion string         `json:"apiVersion" null:"never"` // version of the document
	Kind       string         `json:"kind" null:"never"`       // CapacityTypeList
	Metadata   ListMeta       `json:"metadata"`                // as lists of Kubernetes have
	Items      []CapacityType `json:"items"`                   // by name of the type
	NodeGroup  *NodeGroupType `json:"nodeGroup"`               // what a managed node group of these types applies; null: of one type
	Partial    bool           `json:"partial"`                 // never: no node is read
	Errors     []NodeError    `json:"errors"`                  // none
	SampledAt  time.Time      `json:"sampledAt"`               // when it was computed
}

// CapacityType is an instance type with the max-pods that each rule gives it.
type CapacityType struct {
	InstanceType string         `json:"instanceType" null:"never"` // such as m5.large
	ENIs         int            `json:"enis"`                      // of the default network card
	IPv4PerENI   int            `json:"ipv4PerEni"`                // its primary address included
	VCPUs        *int           `json:"vcpus"`                     // null when unknown
	MemoryMiB    *int           `json:"memoryMiB"`                 // null when unknown
	IPCapacity   *int           `json:"ipCapacity"`                // pods that can run without branch ENIs; null: no limit (IPv6)
	Total        *int           `json:"totalCapacity"`             // with branch ENIs; null: no limit (IPv6)
	Rules        []CapacityRule `json:"rules"`                     // published ones, ours last
	Warnings     []string       `json:"warnings"`                  // settings without effect, and the like
	Explained    []string       `json:"explained"`                 // where published sources disagree about the type, with --explain
}

// CapacityRule is what one rule gives.
type CapacityRule struct {
	Name    string        `json:"name" null:"never"`   // such as nodeadm
	MaxPods *int          `json:"maxPods"`             // null: none, and why says why not
	Terms   []MaxPodsTerm `json:"terms"`               // in the order of the computation
	Source  string        `json:"source" null:"never"` // where the rule is published
	Why     string        `json:"why"`                 // what one should know about the number; may be empty
}

// NodeGroupType is what a managed node group of several types applies to all its nodes.
type NodeGroupType struct {
	MaxPods      int    `json:"maxPods"`                   // the smallest of its types
	InstanceType string `json:"instanceType" null:"never"` // the one that sets it
}

// CapacitySubnetList is what cnictl capacity subnet shows.
type CapacitySubnetList struct {
	APIVersion  string           `json:"apiVersion" null:"never"` // version of the document
	Kind        string           `json:"kind" null:"never"`       // CapacitySubnetList
	Metadata    ListMeta         `json:"metadata"`                // as lists of Kubernetes have
	Node        CapacityNode     `json:"node"`                    // what is placed
	Items       []CapacitySubnet `json:"items"`                   // in the order given
	Nodes       int              `json:"nodes"`                   // that fit into all of them, at worst
	NodesAtBest int              `json:"nodesAtBest"`             // where EC2 packs single addresses
	Pods        int              `json:"pods"`                    // of these nodes, at worst
	PodsAtBest  int              `json:"podsAtBest"`              // where EC2 packs single addresses
	Partial     bool             `json:"partial"`                 // never: no node is read
	Errors      []NodeError      `json:"errors"`                  // none
	SampledAt   time.Time        `json:"sampledAt"`               // when it was computed
}

// CapacityNode is a planned node.
type CapacityNode struct {
	InstanceType    string `json:"instanceType" null:"never"` // such as m5.large
	Pods            int    `json:"pods"`                      // with an address of the pool
	ENIs            int    `json:"enis"`                      // attached
	Addresses       int    `json:"addresses"`                 // that pods can have
	Prefixes        int    `json:"prefixes"`                  // of which these addresses are, 0 without prefix delegation
	Wasted          int    `json:"wasted"`                    // of these no pod has
	SubnetAddresses int    `json:"subnetAddresses"`           // with the interfaces' own
}

// Roles of a subnet of a planned cluster.
const (
	RolePods  = "pods"  // interfaces that serve pods
	RoleNodes = "nodes" // primary interfaces alone, with custom networking
)

// CapacitySubnet is a subnet and what fits into it.
type CapacitySubnet struct {
	CIDR        string `json:"cidr" null:"never"` // IPv4 block
	Role        string `json:"role" null:"never"` // pods or nodes
	Usable      int    `json:"usable"`            // addresses, less those that EC2 keeps
	Used        int    `json:"used"`              // by others
	Free        int    `json:"free"`              // usable, less these
	FreeBlocks  int    `json:"freeBlocks"`        // /28s that may become prefixes, at best
	PerNode     int    `json:"perNode"`           // addresses that a node holds here
	Nodes       int    `json:"nodes"`             // that fit, at worst
	NodesAtBest int    `json:"nodesAtBest"`       // where EC2 packs single addresses
	Pods        int    `json:"pods"`              // of these nodes, at worst; 0 in a subnet of primary interfaces
	PodsAtBest  int    `json:"podsAtBest"`        // where EC2 packs single addresses
}
