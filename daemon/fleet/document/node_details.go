package document

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// NodePodList is what cnictl node pods shows: the pods that Kubernetes has on a node
// beside the addresses that its daemon has given.
type NodePodList struct {
	APIVersion string        `json:"apiVersion" null:"never"` // version of the document
	Kind       string        `json:"kind" null:"never"`       // NodePodList
	Metadata   ListMeta      `json:"metadata"`                // as lists of Kubernetes have
	Node       string        `json:"node" null:"never"`       // whose pods they are
	SampledAt  time.Time     `json:"sampledAt"`               // end of the reading
	Items      []NodePodItem `json:"items"`                   // by namespace, name
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
	Phase    string     `json:"phase"`              // in Kubernetes; empty when it was not read
	State    string     `json:"state" null:"never"` // assigned, branch, host-network, ended, waiting, unknown, leftover
	Address  string     `json:"address"`            // empty: none
	ENIID    string     `json:"eniId"`              // network interface that holds it; empty: none that is known
	Device   *int       `json:"device"`             // device index on the card; null: none that is known
	SubnetID string     `json:"subnetId"`           // of the network interface; empty when unknown
	Since    *time.Time `json:"since"`              // when it got the address, or was started without one
	Reason   string     `json:"reason"`             // why it has no address, or what is inconsistent; empty: nothing
}

// PlanComparison is what cnictl node plan shows: what the pool would do next, and what
// it would do under other targets.
type PlanComparison struct {
	APIVersion string               `json:"apiVersion" null:"never"` // version of the document
	Kind       string               `json:"kind" null:"never"`       // PlanComparison
	Node       string               `json:"node" null:"never"`       // whose pool it is
	SampledAt  *time.Time           `json:"sampledAt"`               // by the node's clock
	Current    introspect.NodePlan  `json:"current"`                 // under the node's own targets
	WhatIf     *introspect.NodePlan `json:"whatIf"`                  // under those given; null: none are
	Partial    bool                 `json:"partial"`                 // something could not be read
	Errors     []NodeError          `json:"errors"`                  // what could not be read
}

// NodeMetrics is what cnictl node metrics shows.
type NodeMetrics struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // NodeMetrics
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Node       string      `json:"node" null:"never"`       // whose metrics they are
	SampledAt  time.Time   `json:"sampledAt"`               // when they were read
	Items      []Metric    `json:"items"`                   // in the order of the node
	Partial    bool        `json:"partial"`                 // something could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
}

// Metric is one sample.
type Metric struct {
	Name   string            `json:"name" null:"never"` // of the sample
	Labels map[string]string `json:"labels"`            // empty: none
	Value  *float64          `json:"value"`             // null: not a number, or infinite
	Type   string            `json:"type"`              // counter, gauge, histogram, summary, untyped
	Help   string            `json:"help"`              // of its family
}

// NodeCheckpoint is what cnictl node checkpoint shows: the allocations that outlive a
// restart of the daemon.
type NodeCheckpoint struct {
	APIVersion string           `json:"apiVersion" null:"never"` // version of the document
	Kind       string           `json:"kind" null:"never"`       // NodeCheckpoint
	Metadata   ListMeta         `json:"metadata"`                // as lists of Kubernetes have
	Node       string           `json:"node"`                    // whose allocations they are
	Source     string           `json:"source" null:"never"`     // daemon: what it holds; else the file that was read
	SampledAt  time.Time        `json:"sampledAt"`               // when they were read
	Problem    string           `json:"problem"`                 // what is wrong with the file; empty: nothing
	Items      []CheckpointItem `json:"items"`                   // by address
	Partial    bool             `json:"partial"`                 // something could not be read
	Errors     []NodeError      `json:"errors"`                  // what could not be read
}

// CheckpointDaemon is the source of allocations that the daemon reported.
const CheckpointDaemon = "daemon"

// CheckpointItem is one allocation. Sandbox IDs are omitted.
type CheckpointItem struct {
	Address      netip.Addr `json:"address" null:"never"`   // the pod's
	IPv6         netip.Addr `json:"ipv6"`                   // a second one; empty: none
	PodNamespace string     `json:"podNamespace"`           // empty: not written
	PodName      string     `json:"podName"`                // empty: not written
	IfName       string     `json:"ifName"`                 // inside the pod; empty: not reported
	Network      string     `json:"network"`                // of CNI; empty: not reported
	Interfaces   int        `json:"interfaces" null:"zero"` // that the pod requested; 0: not reported
	AllocatedAt  *time.Time `json:"allocatedAt"`            // null: not written
}
