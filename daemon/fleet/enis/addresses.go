package enis

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// AddressRow is an address with the time of its report, by the node's clock.
type AddressRow struct {
	document.AddressItem
	At *time.Time
}

// Addresses returns the addresses of a node.
func Addresses(n document.NodeIPAM) []AddressRow {
	items := document.FlattenAddresses(n.Metadata.Name, n.ENIs)
	rows := make([]AddressRow, len(items))
	for i, item := range items {
		rows[i] = AddressRow{item, n.SampledAt}
	}
	return rows
}

// AddressItems returns the documents of addresses.
func AddressItems(rows []AddressRow) []document.AddressItem {
	items := make([]document.AddressItem, len(rows))
	for i, r := range rows {
		items[i] = r.AddressItem
	}
	return items
}

// AddressColumns returns the columns of addresses; with several, those for several nodes, which
// add the node.
func AddressColumns(several bool) []query.Column[AddressRow] {
	columns := []query.Column[AddressRow]{
		{Name: "address", Header: "ADDRESS", Title: "address, or a prefix for those of its addresses that were never used", Text: func(a AddressRow) string { return a.Address }, Number: addressNumber},
		{Name: "state", Header: "STATE", Title: "assigned, cooling or free", CSV: []query.Column[AddressRow]{
			{Header: "STATE", Text: func(a AddressRow) string { return show.Safe(a.State) }},
			{Header: "COUNT", Text: func(a AddressRow) string { return show.Count(max(1, a.Count)) }},
		}, Text: func(a AddressRow) string {
			if a.Count > 1 {
				return fmt.Sprintf("%s × %s", show.Safe(a.State), show.Count(a.Count))
			}
			return show.Safe(a.State)
		}},
		{Name: "for", Header: "FOR", Title: "time in this state", Right: true, Unit: "SECONDS", Text: forText, Number: forSeconds},
		{Name: "eni", Header: "ENI", Title: "ENI that holds it", Drop: 1, Text: func(a AddressRow) string { return show.Safe(a.ENIID) }},
		{Name: "device", Header: "DEVICE", Title: "device index of the ENI", Right: true, Drop: 2,
			Text: func(a AddressRow) string { return show.Count(a.Device) }, Number: func(a AddressRow) (float64, bool) { return float64(a.Device), true }},
		{Name: "pod", Header: "POD", Title: "its pod, NAMESPACE/NAME", Text: func(a AddressRow) string { return show.Safe(podName(a)) }},
		{Name: "cidr", Header: "CIDR", Title: "secondary IP or prefix it belongs to", Wide: true, Text: func(a AddressRow) string { return a.CIDR.String() }},
		{Name: "card", Header: "CARD", Title: "network card index", Right: true, Wide: true,
			Text: func(a AddressRow) string { return show.Count(a.Card) }, Number: func(a AddressRow) (float64, bool) { return float64(a.Card), true }},
		{Name: "table", Header: "TABLE", Title: "route table of its traffic, 254 is main", Right: true, Wide: true,
			Text: func(a AddressRow) string { return show.Int(a.RouteTable) }, Number: func(a AddressRow) (float64, bool) { return query.Number(a.RouteTable) }},
		{Name: "subnet", Header: "SUBNET", Title: "subnet of the ENI", Wide: true, Text: func(a AddressRow) string { return show.Safe(show.OrUnknown(a.SubnetID)) }},
	}
	if several {
		columns = slices.Insert(columns, 0, query.Column[AddressRow]{Name: "node", Header: "NODE", Title: "node", Text: func(a AddressRow) string { return show.Safe(a.Node) }})
	}
	return columns
}

func forText(a AddressRow) string {
	if a.At == nil {
		return show.Unknown
	}
	return show.Since(a.Since(), *a.At)
}

func forSeconds(a AddressRow) (float64, bool) {
	if forText(a) == show.Unknown {
		return 0, false
	}
	return a.At.Sub(*a.Since()).Seconds(), true
}

// addressNumber orders addresses. IPv6 addresses that differ only beyond the precision of a float
// keep their order.
func addressNumber(a AddressRow) (float64, bool) {
	ip := a.CIDR.Addr()
	if parsed, err := netip.ParseAddr(a.Address); err == nil {
		ip = parsed
	}
	if !ip.IsValid() {
		return 0, false
	}
	v, _ := new(big.Float).SetInt(new(big.Int).SetBytes(ip.AsSlice())).Float64()
	return v, true
}

// podName returns NAMESPACE/NAME, or unknown without a name.
func podName(a AddressRow) string {
	if a.PodName == "" {
		return show.Unknown
	}
	return a.PodNamespace + "/" + a.PodName
}
