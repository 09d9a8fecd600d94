package introspect

import (
	"net/netip"
	"time"
)

// NodePod answers /v1/pod: what the daemon holds for one pod and what the kernel
// has for it.
type NodePod struct {
	APIVersion string         `json:"apiVersion"` // version of the document
	Kind       string         `json:"kind"`       // NodePod
	Pod        PodRef         `json:"pod"`        // the requested pod
	Interfaces []PodInterface `json:"interfaces"` // one per address, by network card
}

// PodInterface is one address of a pod.
type PodInterface struct {
	Address     netip.Addr `json:"address" null:"never"` // the pod's
	ENIID       string     `json:"eniId"`                // the network interface that holds it; empty: it is on none that is known
	Card        *int       `json:"card"`                 // network card index; null when the interface is unknown
	Device      *int       `json:"device"`               // device index on the card; null when the interface is unknown
	SubnetID    string     `json:"subnetId"`             // of the network interface; empty when unknown
	RouteTable  *int       `json:"routeTable"`           // of the network interface, 254 is main; null when unknown
	AssignedAt  *time.Time `json:"assignedAt"`           // when the pod got it; null when unknown
	HostLink    string     `json:"hostLink"`             // the name that the host end of the pod's link should have
	Observed    *PodKernel `json:"observed"`             // what the kernel has, read for this answer; null when it could not be read
	Problem     string     `json:"problem"`              // why it could not be read; empty when it was
	Differences []string   `json:"differences"`          // between wanted and observed, one sentence each; null when unknown
}

// PodKernel is what the kernel of the node has for the address of a pod.
type PodKernel struct {
	Link       *PodLink       `json:"link"`       // the host end of the pod's link; null: there is no such link
	Rules      []PodRule      `json:"rules"`      // policy rules to or from exactly the address, by priority
	Routes     []PodRoute     `json:"routes"`     // routes to exactly the address in the main table
	Tables     []PodRoute     `json:"tables"`     // routes of the tables that the rules lead to, main aside; at most 64
	Neighbours []PodNeighbour `json:"neighbours"` // neighbour entries of the address
}

// PodLink is a network link of the node.
type PodLink struct {
	Name    string `json:"name" null:"never"` // in the node's namespace
	Index   int    `json:"index"`             // interface index
	Kind    string `json:"kind"`              // veth, …; empty for hardware
	MAC     string `json:"mac"`               // lower-case colon form
	MTU     int    `json:"mtu"`               // bytes
	Up      bool   `json:"up"`                // administratively
	Running bool   `json:"running"`           // it carries traffic: the pod's end is up too
}

// PodRule is a policy rule.
type PodRule struct {
	Priority int          `json:"priority"` // lower ones come first
	From     netip.Prefix `json:"from"`     // source; empty: any
	To       netip.Prefix `json:"to"`       // destination; empty: any
	Table    int          `json:"table"`    // that is looked up; 254 is main
}

// PodRoute is a unicast route.
type PodRoute struct {
	Table   int          `json:"table"`             // 254 is main
	To      netip.Prefix `json:"to" null:"never"`   // destination; 0.0.0.0/0 or ::/0 is the default route
	Gateway netip.Addr   `json:"gateway"`           // next hop; empty: on the link
	Link    string       `json:"link" null:"never"` // name of the link it leaves by
}

// PodNeighbour is an entry of the neighbour table.
type PodNeighbour struct {
	Address netip.Addr `json:"address" null:"never"` // the pod's
	Link    string     `json:"link" null:"never"`    // name of the link it is reached by
	MAC     string     `json:"mac"`                  // lower-case colon form; empty while not resolved
	State   string     `json:"state" null:"never"`   // permanent, reachable, stale, delay, probe, incomplete, failed, noarp, none
}
