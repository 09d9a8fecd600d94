package cluster

import (
	"net/netip"
	"time"
)

// Node holds what the daemon uses of its Node object.
type Node struct {
	MaxPods       int  // status.capacity.pods; 0 = not reported yet
	PodENIs       int  // status.capacity["vpc.amazonaws.com/pod-eni"]; 0 = none
	Unschedulable bool // cordoned
	Labels        map[string]string
	Annotations   map[string]string
}

// Pod holds what the daemon uses of a pod.
type Pod struct {
	Namespace, Name, UID string
	NodeName             string
	// Mirror: the pod represents a static pod, which the kubelet and runtimes know by
	// another UID.
	Mirror      bool
	HostNetwork bool
	Ended       bool // phase Succeeded or Failed, or being deleted
	Finished    bool // phase Succeeded or Failed
	IPs         int  // addresses in status.podIPs: it already has its network
	// LinkHash is the end of the name of its host link, see netnames.Hash.
	LinkHash string
	// BranchENI: containers[0] has a limit whose name starts with
	// "vpc.amazonaws.com/pod-eni", as upstream looks for it.
	BranchENI bool
	// MultiNIC: annotation k8s.amazonaws.com/nicConfig asks for an interface per card.
	MultiNIC bool
	// PodENI and PodIPs are the annotations "vpc.amazonaws.com/pod-eni" and
	// "vpc.amazonaws.com/pod-ips"; "" if absent.
	PodENI, PodIPs string
	CreatedAt      time.Time // zero if unknown
}

// ENIConfig is the part of an ENIConfig object that determines a new ENI.
type ENIConfig struct {
	Name           string
	Subnet         string   // "subnet-…"
	SecurityGroups []string // if empty, those of the primary ENI
}

// Feature is an entry of a CNINode's spec.features.
type Feature struct{ Name, Value string }

// Names of features.
const (
	FeatureSecurityGroupsForPods = "SecurityGroupsForPods" // its value is ""
	FeatureCustomNetworking      = "CustomNetworking"      // its value is the ENIConfig's name
)

// CNINode holds what the daemon uses of its CNINode.
type CNINode struct {
	Features  []Feature
	ManagedBy string
	Trunk     string // status.trunkInterface.id, if the controller writes it
}

// Branch is the branch ENI of a pod according to its annotation.
type Branch struct {
	ENI     string // "eni-…"; informative
	MAC     string // lower-case colon form
	Address netip.Addr
	VLAN    int // 1–120
	Gateway netip.Addr
}
