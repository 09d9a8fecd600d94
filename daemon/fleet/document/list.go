package document

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// Kinds of documents that cnictl builds from nodes and Kubernetes.
const (
	KindNode           = "NodeIPAM"
	KindNodeList       = "NodeIPAMList"
	KindENIList        = "ENIList"
	KindAddressList    = "AddressList"
	KindAddressUseList = "AddressUseList"
	KindFleet          = "FleetStatus"
	KindVersion        = "Version"
	KindPodList        = "NodePodList"
	KindFleetPodList   = "PodList"
	KindPlanComparison = "PlanComparison"
	KindMetrics        = "NodeMetrics"
	KindCheckpoint     = "NodeCheckpoint"
	KindPodReport      = "PodReport"
	KindLogList        = "LogList"
	KindEventList      = "EventList"
	KindRateList       = "RateList"
	KindRecording      = "Recording"
)

// ENIList is what cnictl enis and node enis show.
type ENIList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // ENIList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Node       string      `json:"node"`                    // only in node enis; otherwise empty, and each item names its node
	SampledAt  *time.Time  `json:"sampledAt"`               // in node enis by the node's clock, otherwise the end of the sweep
	Items      []ENIItem   `json:"items"`                   // sorted by node, card, device
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // nodes that could not be read
}

// ENIItem is an ENI of a node.
type ENIItem struct {
	Node string `json:"node" null:"never"` // node that it is attached to
	introspect.NodeENI
}

// AddressList is what cnictl ips and node ips show.
type AddressList struct {
	APIVersion string        `json:"apiVersion" null:"never"` // version of the document
	Kind       string        `json:"kind" null:"never"`       // AddressList
	Metadata   ListMeta      `json:"metadata"`                // standard Kubernetes list metadata
	Node       string        `json:"node"`                    // only in node ips; otherwise empty, and each item names its node
	SampledAt  *time.Time    `json:"sampledAt"`               // in node ips by the node's clock, otherwise the end of the sweep
	Items      []AddressItem `json:"items"`                   // sorted by node, ENI, address
	Partial    bool          `json:"partial"`                 // some node could not be read
	Errors     []NodeError   `json:"errors"`                  // nodes that could not be read
}

// AddressItem is one address of a node, or if count exceeds 1 the never-used rest of a prefix.
type AddressItem struct {
	Node         string       `json:"node" null:"never"`    // node that holds it
	Address      string       `json:"address" null:"never"` // one address; a prefix if the item is the rest of a prefix
	Count        int          `json:"count"`                // number of addresses
	CIDR         netip.Prefix `json:"cidr" null:"never"`    // secondary IP or prefix it belongs to
	ENIID        string       `json:"eniId" null:"never"`   // network interface
	Card         int          `json:"card"`                 // network card index
	Device       int          `json:"device"`               // device index on the card
	SubnetID     string       `json:"subnetId"`             // subnet of the ENI; empty if unknown
	RouteTable   *int         `json:"routeTable"`           // route table of the ENI; null if unknown
	State        string       `json:"state" null:"never"`   // assigned, cooling, free
	PodNamespace string       `json:"podNamespace"`         // namespace of the pod; empty if none or unknown
	PodName      string       `json:"podName"`              // name of the pod; empty if none or unknown
	AssignedAt   *time.Time   `json:"assignedAt"`           // time of the last assignment; null if never or unknown
	UnassignedAt *time.Time   `json:"unassignedAt"`         // time of the last release; null while assigned
}

// AddressUseList is what cnictl ips --by shows.
type AddressUseList struct {
	APIVersion string       `json:"apiVersion" null:"never"` // version of the document
	Kind       string       `json:"kind" null:"never"`       // AddressUseList
	Metadata   ListMeta     `json:"metadata"`                // standard Kubernetes list metadata
	By         string       `json:"by" null:"never"`         // namespace, owner, group, subnet, node
	Items      []AddressUse `json:"items"`                   // most assigned addresses first
	Assigned   int          `json:"assigned"`                // sum over all, not only the items shown
	Warm       float64      `json:"warm"`                    // sum over all, not only the items shown
	From       *time.Time   `json:"from"`                    // since when addressHours and change count; null without a recording
	Partial    bool         `json:"partial"`                 // some node could not be read
	Errors     []NodeError  `json:"errors"`                  // what could not be read
	SampledAt  time.Time    `json:"sampledAt"`               // end of the sweep
}

// AddressUse is what one namespace, owner, group, subnet or node takes of the pools.
type AddressUse struct {
	Name          string   `json:"name"`          // of what; owners as KIND/NAME; empty if unknown, and for warm addresses of nodes without pods
	Namespace     string   `json:"namespace"`     // of an owner; empty otherwise
	Assigned      int      `json:"assigned"`      // addresses of its pods
	Share         *float64 `json:"share"`         // of all assigned addresses, 0 to 1; null if there are none
	Warm          float64  `json:"warm"`          // its share of the addresses that pools keep free: of each node, by assigned addresses
	Nodes         int      `json:"nodes"`         // on which it has addresses
	AddressHours  *float64 `json:"addressHours"`  // assigned addresses times hours, in the recording so far; null without one, and for owners
	Change        *int     `json:"change"`        // of assigned, since the recording began; null without one, and for owners
	ChangePerHour *float64 `json:"changePerHour"` // the same per hour
}

// Since returns when the address entered its state.
func (a AddressItem) Since() *time.Time {
	if a.State == introspect.AddressAssigned {
		return a.AssignedAt
	}
	return a.UnassignedAt
}

// FlattenAddresses lists the addresses of a node's ENIs in order. The never-used addresses of a
// prefix are one item.
func FlattenAddresses(node string, enis []introspect.NodeENI) []AddressItem {
	items := []AddressItem{}
	for _, e := range enis {
		for _, c := range e.CIDRs {
			of := AddressItem{
				Node: node, Count: 1, CIDR: c.CIDR, ENIID: e.ID, Card: e.Card, Device: e.Device,
				SubnetID: e.SubnetID, RouteTable: e.RouteTable,
			}
			for _, a := range c.Addresses {
				one := of
				one.Address, one.State = a.Address.String(), a.State
				one.PodNamespace, one.PodName = a.PodNamespace, a.PodName
				one.AssignedAt, one.UnassignedAt = a.AssignedAt, a.UnassignedAt
				items = append(items, one)
			}
			if never := c.Total - len(c.Addresses); never > 0 {
				of.Address, of.State, of.Count = c.CIDR.String(), introspect.AddressFree, never
				if !c.IsPrefix() {
					of.Address = c.CIDR.Addr().String()
				}
				items = append(items, of)
			}
		}
	}
	return items
}
