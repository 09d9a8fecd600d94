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
