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
	SubnetID   string     `json:"subnetId"`        // subnet of the ENI, subnet-…; empty if unknown
	Primary    bool       `json:"primary"`         // the node's primary ENI
	Trunk      bool       `json:"trunk"`           // it carries branch ENIs
	EFA        bool       `json:"efa"`             // it has an Elastic Fabric Adapter
	Excluded   bool       `json:"excluded"`        // its subnet is excluded from pod addresses
	RouteTable *int       `json:"routeTable"`      // route table of its traffic, 254 is main; null if unknown
	Total      int        `json:"total"`           // addresses held
	Assigned   int        `json:"assigned"`        // addresses assigned to pods
	Cooling    int        `json:"cooling"`         // addresses in cooldown
	Free       int        `json:"free"`            // addresses neither assigned nor cooling
	Prefixes   int        `json:"prefixes"`        // number of /28 or /80 prefixes
	CIDRs      []NodeCIDR `json:"cidrs"`           // sorted by address
}

// NodeCIDR is one secondary IP or prefix of an ENI.
type NodeCIDR struct {
	CIDR      netip.Prefix  `json:"cidr" null:"never"` // the secondary IP or prefix
	Total     int           `json:"total"`             // addresses held
	Assigned  int           `json:"assigned"`          // addresses assigned to pods
	Cooling   int           `json:"cooling"`           // addresses in cooldown
	Free      int           `json:"free"`              // addresses neither assigned nor cooling
	Addresses []NodeAddress `json:"addresses"`         // addresses with a record: assigned now or since the daemon started
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
	Address      netip.Addr `json:"address" null:"never"` // IP address
	State        string     `json:"state" null:"never"`   // assigned, cooling, free
	PodNamespace string     `json:"podNamespace"`         // namespace of the pod; empty if none or unknown
	PodName      string     `json:"podName"`              // name of the pod; empty if none or unknown
	AssignedAt   *time.Time `json:"assignedAt"`           // time of the last assignment; null if unknown
	UnassignedAt *time.Time `json:"unassignedAt"`         // time of the last release; null while assigned
}
