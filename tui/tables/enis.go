package tables

import (
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// ENIs returns the columns of ENIs; with several, those for several nodes, which add the node.
func ENIs(several bool) []query.Column[document.ENIItem] {
	type row = document.ENIItem
	number := query.Count[row]
	columns := []query.Column[row]{
		plain("eni", "ENI", "ID of the ENI", func(e row) string { return e.ID }),
		number("card", "CARD", "network card index", 5, func(e row) *int { return &e.Card }),
		number("device", "DEVICE", "device index on the card", 2, func(e row) *int { return &e.Device }),
		{Name: "kind", Header: "KIND", Drop: 1, Title: "primary, secondary, trunk, efa, excluded",
			Text: func(e row) string { return inventory.ENIKind(e.NodeENI) }},
		number("assigned", "ASSIGNED", "addresses assigned to pods", 0, func(e row) *int { return &e.Assigned }).Headed("USED"),
		number("cooling", "COOLING", "addresses cooling down after their pod was deleted", 0, func(e row) *int { return &e.Cooling }),
		number("free", "FREE", "addresses available to new pods", 0, func(e row) *int { return &e.Free }),
		number("total", "TOTAL", "addresses held: used, cooling or free", 6, func(e row) *int { return &e.Total }).Headed("HELD"),
		number("prefixes", "PREFIXES", "prefixes held", 7, func(e row) *int {
			if e.CIDRs == nil && e.Total > 0 {
				return nil // only its summary was read
			}
			return &e.Prefixes
		}),
		number("table", "TABLE", "route table of its traffic, 254 is main", 3, func(e row) *int { return e.RouteTable }),
		query.Words("subnet", "SUBNET", "subnet of the ENI", 4, func(e row) string { return e.SubnetID }),
		wide(plain("cidrs", "CIDRS", "secondary IPs and prefixes", cidrs)),
	}
	if several {
		columns = slices.Insert(columns, 0, plain("node", "NODE", "node", func(e row) string { return e.Node }))
	}
	return columns
}

func cidrs(e document.ENIItem) string {
	texts := make([]string, len(e.CIDRs))
	for i, c := range e.CIDRs {
		texts[i] = c.CIDR.String()
	}
	return show.OrUnknown(strings.Join(texts, ","))
}
