package introspect

import "time"

// KindCapacityTypeList is the kind of documents of cnictl capacity type.
const KindCapacityTypeList = "CapacityTypeList"

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
