package introspect

import (
	"net/netip"
	"time"
)

// Reason classifies why a node could not be read. The codes are stable.
type Reason string

const (
	ReasonRefused    Reason = "refused"     // nothing listens there
	ReasonNoSocket   Reason = "no-socket"   // the socket file does not exist
	ReasonForbidden  Reason = "forbidden"   // no permission for the socket
	ReasonTimeout    Reason = "timeout"     // no complete answer in time
	ReasonCancelled  Reason = "cancelled"   // the caller gave up
	ReasonUnresolved Reason = "unresolved"  // the host name cannot be resolved
	ReasonTransport  Reason = "transport"   // the connection broke
	ReasonNotHTTP    Reason = "not-http"    // the server does not speak HTTP
	ReasonStatus     Reason = "bad-status"  // an HTTP status that is not a success
	ReasonNotFound   Reason = "not-found"   // 404
	ReasonNotJSON    Reason = "not-json"    // the body is not JSON
	ReasonMalformed  Reason = "malformed"   // JSON, but not the requested document
	ReasonTooLarge   Reason = "too-large"   // the body exceeds the limit
	ReasonNoEndpoint Reason = "no-endpoint" // the node does not know the path (an older or upstream daemon)
	ReasonNotServed  Reason = "not-served"  // the node knows the path but does not serve it
	ReasonBadRequest Reason = "bad-request" // the node refuses the parameters
	ReasonBusy       Reason = "busy"        // the node asks to retry later

	ReasonNoPod         Reason = "no-pod"            // the node has no aws-node pod
	ReasonPodNotRunning Reason = "pod-not-running"   // the node's aws-node pod is not running
	ReasonOff           Reason = "introspection-off" // the server is off, or on an unreachable socket
	ReasonCredential    Reason = "credential"        // no credentials for the cluster, or it rejects them
)

// Pool is a decoded /v1/enis of any release.
type Pool struct {
	Shape Shape
	Cards []CardSummary // limits are null: the document lacks them
	ENIs  []NodeENI     // by card, device, id

	// Mismatches lists the document's own counters that its addresses contradict. The
	// counts above never come from them.
	Mismatches []Mismatch
}

// Mismatch is a card's counter that differs from the sum over its addresses, including
// excluded ENIs and the mode not in use, as upstream counts.
type Mismatch struct {
	Card     int
	Member   string // TotalIPs or AssignedIPs
	Reported int
	Counted  int
}

// Shape names the release that introduced a form of /v1/enis; it applies to all releases up
// to the next Shape. A document that fits several, because it holds no address that would
// distinguish them, counts as the newest.
type Shape string

const (
	ShapeAddresses Shape = "v1.8"  // and earlier: addresses directly below the ENI
	ShapeCIDRs     Shape = "v1.9"  // IPv4 CIDRs between ENI and address
	ShapeFamilies  Shape = "v1.10" // to v1.19: IPv4 and IPv6
	ShapeCards     Shape = "v1.20" // and v1.21: a level of network cards
	ShapeSubnets   Shape = "v1.22" // the ENI's subnet, and whether it is excluded
	ShapeBlanked   Shape = "v1.23" // container ids blanked; our daemon's form too
)

// NodeENI is one ENI of a node with counts recomputed from its addresses.
type NodeENI struct {
	ID         string     `json:"id" null:"never"` // eni-…
	Card       int        `json:"card"`            // network card index
	Device     int        `json:"device"`          // device index on the card
	SubnetID   string     `json:"subnetId"`        // subnet-…; empty when unknown
	Primary    bool       `json:"primary"`         // the node's own
	Trunk      bool       `json:"trunk"`           // it carries branch ENIs
	EFA        bool       `json:"efa"`             // it has an Elastic Fabric Adapter
	Excluded   bool       `json:"excluded"`        // its subnet may not give addresses to pods
	RouteTable *int       `json:"routeTable"`      // of its traffic, 254 is main; null when unknown
	Total      int        `json:"total"`           // addresses
	Assigned   int        `json:"assigned"`        // pods have them
	Cooling    int        `json:"cooling"`         // rest after their last pod
	Free       int        `json:"free"`            // neither of these
	Prefixes   int        `json:"prefixes"`        // /28 or /80 prefixes
	CIDRs      []NodeCIDR `json:"cidrs"`           // by address
}

// NodeCIDR is one secondary IP or prefix of an ENI.
type NodeCIDR struct {
	CIDR      netip.Prefix  `json:"cidr" null:"never"` // of the secondary IP or prefix
	Total     int           `json:"total"`             // addresses
	Assigned  int           `json:"assigned"`          // pods have them
	Cooling   int           `json:"cooling"`           // rest after their last pod
	Free      int           `json:"free"`              // neither of these
	Addresses []NodeAddress `json:"addresses"`         // those with a record: assigned now or since the daemon started
}

// IsPrefix reports whether the CIDR is a /28 or /80 rather than a secondary IP.
func (c NodeCIDR) IsPrefix() bool { return !c.CIDR.IsSingleIP() }

// Address states.
const (
	AddressAssigned = "assigned"
	AddressCooling  = "cooling"
	AddressFree     = "free"
)

// NodeAddress is one address.
type NodeAddress struct {
	Address      netip.Addr `json:"address" null:"never"` // of a pod, or that was one's
	State        string     `json:"state" null:"never"`   // assigned, cooling, free
	PodNamespace string     `json:"podNamespace"`         // empty: none, or unknown
	PodName      string     `json:"podName"`              // empty: none, or unknown
	AssignedAt   *time.Time `json:"assignedAt"`           // of the last assignment
	UnassignedAt *time.Time `json:"unassignedAt"`         // null while assigned
}
