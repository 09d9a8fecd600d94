package document

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// NodePodList is what cnictl node pods shows: the pods that Kubernetes has on a node, with the
// addresses that its daemon assigned to them.
type NodePodList struct {
	APIVersion string        `json:"apiVersion" null:"never"` // version of the document
	Kind       string        `json:"kind" null:"never"`       // NodePodList
	Metadata   ListMeta      `json:"metadata"`                // standard Kubernetes list metadata
	Node       string        `json:"node" null:"never"`       // node name
	SampledAt  time.Time     `json:"sampledAt"`               // end of the reading
	Items      []NodePodItem `json:"items"`                   // sorted by namespace, name
	Partial    bool          `json:"partial"`                 // Kubernetes or the daemon could not be read
	Errors     []NodeError   `json:"errors"`                  // what could not be read
}

// States of a pod's address.
const (
	PodHasAddress  = "assigned"     // the daemon assigned one
	PodBranch      = "branch"       // it has a branch ENI, outside the pool
	PodHostNetwork = "host-network" // it uses the node's own address
	PodEnded       = "ended"        // it has ended and needs none
	PodWaiting     = "waiting"      // it has none and should get one
	PodUnknown     = "unknown"      // it has an address unknown to the daemon
	PodLeftOver    = "left-over"    // the daemon holds an address for a pod that is gone from Kubernetes
)

// NodePodItem is one pod of a node.
type NodePodItem struct {
	introspect.PodRef
	Phase    string     `json:"phase"`              // phase in Kubernetes; empty if Kubernetes was not read
	State    string     `json:"state" null:"never"` // assigned, branch, host-network, ended, waiting, unknown, left-over
	Address  string     `json:"address"`            // address of the pod; empty if none
	ENIID    string     `json:"eniId"`              // network interface that holds it; empty if none is known
	Device   *int       `json:"device"`             // device index on the card; null if none is known
	SubnetID string     `json:"subnetId"`           // subnet of the ENI; empty if unknown
	Since    *time.Time `json:"since"`              // when it got the address, or was started without one
	Reason   string     `json:"reason"`             // why it has no address, or what is inconsistent; empty if nothing is wrong
	Finding  string     `json:"finding"`            // code of cnictl doctor for the cause that the daemon reports; empty if it reports none
}

// PodList is what cnictl pods shows: the pods of all nodes, and those not bound to one.
type PodList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // PodList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	SampledAt  time.Time   `json:"sampledAt"`               // end of the reading
	Items      []PodItem   `json:"items"`                   // those without an address first
	Partial    bool        `json:"partial"`                 // Kubernetes or some node could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
}

// PodItem is one pod of the cluster.
type PodItem struct {
	Node string `json:"node"` // node that it is bound to; empty if none
	NodePodItem
}

// PlanComparison is what cnictl node plan shows: what the pool would do next, and what it would
// do with other targets.
type PlanComparison struct {
	APIVersion string               `json:"apiVersion" null:"never"` // version of the document
	Kind       string               `json:"kind" null:"never"`       // PlanComparison
	Node       string               `json:"node" null:"never"`       // node name
	SampledAt  *time.Time           `json:"sampledAt"`               // time of the plan, by the node's clock
	Current    introspect.NodePlan  `json:"current"`                 // plan with the node's own targets
	WhatIf     *introspect.NodePlan `json:"whatIf"`                  // plan with the given targets; null if none were given
	Partial    bool                 `json:"partial"`                 // something could not be read
	Errors     []NodeError          `json:"errors"`                  // what could not be read
}

// NodeMetrics is what cnictl node metrics shows.
type NodeMetrics struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // NodeMetrics
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Node       string      `json:"node" null:"never"`       // node name
	SampledAt  time.Time   `json:"sampledAt"`               // when they were read
	Items      []Metric    `json:"items"`                   // in the order of the node's answer
	Partial    bool        `json:"partial"`                 // something could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
}

// Metric is one sample.
type Metric struct {
	Name   string            `json:"name" null:"never"` // name of the sample
	Labels map[string]string `json:"labels"`            // labels of the sample; empty if none
	Value  *float64          `json:"value"`             // value of the sample; null if infinite or not a number
	Type   string            `json:"type"`              // type of its metric family: counter, gauge, histogram, summary, untyped
	Help   string            `json:"help"`              // help text of its metric family
}

// NodeCheckpoint is what cnictl node checkpoint shows: the allocations that survive a restart of
// the daemon.
type NodeCheckpoint struct {
	APIVersion string           `json:"apiVersion" null:"never"` // version of the document
	Kind       string           `json:"kind" null:"never"`       // NodeCheckpoint
	Metadata   ListMeta         `json:"metadata"`                // standard Kubernetes list metadata
	Node       string           `json:"node"`                    // node name
	Source     string           `json:"source" null:"never"`     // daemon if the daemon reported them; otherwise the file that was read
	SampledAt  time.Time        `json:"sampledAt"`               // when they were read
	Problem    string           `json:"problem"`                 // what is wrong with the file; empty if nothing
	Items      []CheckpointItem `json:"items"`                   // sorted by address
	Partial    bool             `json:"partial"`                 // something could not be read
	Errors     []NodeError      `json:"errors"`                  // what could not be read
}

// CheckpointDaemon is the source of allocations that the daemon reported.
const CheckpointDaemon = "daemon"

// CheckpointItem is one allocation. Sandbox IDs are omitted.
type CheckpointItem struct {
	Address      netip.Addr `json:"address" null:"never"`   // the pod's address
	IPv6         netip.Addr `json:"ipv6"`                   // second address; empty if none
	PodNamespace string     `json:"podNamespace"`           // namespace of the pod; empty if not recorded
	PodName      string     `json:"podName"`                // name of the pod; empty if not recorded
	IfName       string     `json:"ifName"`                 // interface name inside the pod; empty if not reported
	Network      string     `json:"network"`                // name of the CNI network; empty if not reported
	Interfaces   int        `json:"interfaces" null:"zero"` // number of interfaces the pod requested; null if not reported
	AllocatedAt  *time.Time `json:"allocatedAt"`            // time of the allocation; null if not recorded
}
