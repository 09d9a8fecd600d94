package tables

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"

	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Addresses returns the columns of addresses; with several, those for several nodes, which add the
// node.
func Addresses(several bool) []query.Column[inventory.HeldAddress] {
	type row = inventory.HeldAddress
	state := plain("state", "STATE", "assigned, cooling or free", func(a row) string {
		if a.Count > 1 {
			return fmt.Sprintf("%s × %s", a.State, show.Count(a.Count))
		}
		return a.State
	})
	state.CSV = []query.Column[row]{
		{Header: "STATE", Text: func(a row) string { return a.State }},
		{Header: "COUNT", Text: func(a row) string { return show.Count(max(1, a.Count)) }},
	}
	columns := []query.Column[row]{
		{Name: "address", Header: "ADDRESS", Title: "address, or a prefix for those of its addresses that were never used",
			Text: func(a row) string { return a.Address }, Number: addressNumber},
		state,
		{Name: "for", Header: "FOR", Title: "time in this state", Right: true, Unit: "SECONDS", Text: heldFor, Number: heldSeconds},
		{Name: "eni", Header: "ENI", Title: "ENI that holds it", Drop: 1, Text: func(a row) string { return a.ENIID }},
		query.Count("device", "DEVICE", "device index of the ENI", 2, func(a row) *int { return &a.Device }),
		plain("pod", "POD", "its pod, NAMESPACE/NAME", podOf),
		wide(plain("cidr", "CIDR", "secondary IP or prefix it belongs to", func(a row) string { return a.CIDR.String() })),
		wide(query.Count("card", "CARD", "network card index", 0, func(a row) *int { return &a.Card })),
		wide(query.Count("table", "TABLE", "route table of its traffic, 254 is main", 0, func(a row) *int { return a.RouteTable })),
		wide(query.Words("subnet", "SUBNET", "subnet of the ENI", 0, func(a row) string { return a.SubnetID })),
	}
	if several {
		columns = slices.Insert(columns, 0, plain("node", "NODE", "node", func(a row) string { return a.Node }))
	}
	return columns
}

func heldFor(a inventory.HeldAddress) string {
	if a.At == nil {
		return show.Unknown
	}
	return show.Since(a.Since(), *a.At)
}

func heldSeconds(a inventory.HeldAddress) (float64, bool) {
	if heldFor(a) == show.Unknown {
		return 0, false
	}
	return a.At.Sub(*a.Since()).Seconds(), true
}

// addressNumber orders addresses. IPv6 addresses that differ only beyond the precision of a float
// keep their order.
func addressNumber(a inventory.HeldAddress) (float64, bool) {
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

// podOf returns NAMESPACE/NAME, or unknown without a name.
func podOf(a inventory.HeldAddress) string {
	if a.PodName == "" {
		return show.Unknown
	}
	return a.PodNamespace + "/" + a.PodName
}
