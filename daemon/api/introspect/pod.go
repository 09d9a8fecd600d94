package introspect

import (
	"net/netip"
	"time"
)

// NodePod answers /v1/pod: the addresses that the daemon holds for one pod, and the state of the
// kernel for each.
type NodePod struct {
	APIVersion string         `json:"apiVersion"` // version of the document
	Kind       string         `json:"kind"`       // NodePod
	Pod        PodRef         `json:"pod"`        // the requested pod
	Interfaces []PodInterface `json:"interfaces"` // one per address, by network card
}

// PodInterface is one address of a pod.
type PodInterface struct {
	Address     netip.Addr `json:"address" null:"never"` // the pod's address
	ENIID       string     `json:"eniId"`                // network interface that holds it; empty if on no known one
	Card        *int       `json:"card"`                 // network card index; null if the ENI is unknown
	Device      *int       `json:"device"`               // device index on the card; null if the ENI is unknown
	SubnetID    string     `json:"subnetId"`             // subnet of the ENI; empty if unknown
	RouteTable  *int       `json:"routeTable"`           // route table of the ENI, 254 is main; null if unknown
	AssignedAt  *time.Time `json:"assignedAt"`           // when the pod got the address; null if unknown
	HostLink    string     `json:"hostLink"`             // expected name of the host end of the pod's link
	Observed    *PodKernel `json:"observed"`             // the kernel's state, read for this answer; null if it could not be read
	Problem     string     `json:"problem"`              // why the kernel's state could not be read; empty if it was
	Differences []string   `json:"differences"`          // between expected and observed state, one sentence each; null if unknown
}

// PodKernel is the state of the node's kernel for the address of a pod.
type PodKernel struct {
	Link       *PodLink       `json:"link"`       // host end of the pod's link; null if there is none
	Rules      []PodRule      `json:"rules"`      // policy rules to or from exactly this address, by priority
	Routes     []PodRoute     `json:"routes"`     // routes to exactly this address in the main table
	Tables     []PodRoute     `json:"tables"`     // routes of the tables that the rules point to, except main; at most 64
	Neighbours []PodNeighbour `json:"neighbours"` // neighbour entries of the address
}

// PodLink is a network link of the node.
type PodLink struct {
	Name    string `json:"name" null:"never"` // name in the node's network namespace
	Index   int    `json:"index"`             // interface index
	Kind    string `json:"kind"`              // such as veth; empty for hardware
	MAC     string `json:"mac"`               // lower-case colon form
	MTU     int    `json:"mtu"`               // in bytes
	Up      bool   `json:"up"`                // administratively up
	Running bool   `json:"running"`           // it carries traffic: the pod's end is up too
}

// PodRule is a policy rule.
type PodRule struct {
	Priority int          `json:"priority"` // lower values come first
	From     netip.Prefix `json:"from"`     // source; empty for any
	To       netip.Prefix `json:"to"`       // destination; empty for any
	Table    int          `json:"table"`    // route table to look up; 254 is main
}

// PodRoute is a unicast route.
type PodRoute struct {
	Table   int          `json:"table"`             // route table; 254 is main
	To      netip.Prefix `json:"to" null:"never"`   // destination; 0.0.0.0/0 or ::/0 is the default route
	Gateway netip.Addr   `json:"gateway"`           // next hop; empty if on the link
	Link    string       `json:"link" null:"never"` // name of the outgoing link
}

// PodNeighbour is an entry of the neighbour table.
type PodNeighbour struct {
	Address netip.Addr `json:"address" null:"never"` // the pod's address
	Link    string     `json:"link" null:"never"`    // name of the outgoing link
	MAC     string     `json:"mac"`                  // lower-case colon form; empty if unresolved
	State   string     `json:"state" null:"never"`   // permanent, reachable, stale, delay, probe, incomplete, failed, noarp, none
}
