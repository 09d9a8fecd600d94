// Package enis lists the ENIs of nodes and their addresses in rows. Commands and screens share
// its columns. It is pure.
package enis

import (
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

type item = document.ENIItem

// Items returns the ENIs of a node with its name.
func Items(node string, enis []introspect.NodeENI) []document.ENIItem {
	items := make([]document.ENIItem, len(enis))
	for i, e := range enis {
		items[i] = document.ENIItem{Node: node, NodeENI: e}
	}
	return items
}

// Columns returns the columns of ENIs; with several, those for several nodes, which add the node.
func Columns(several bool) []query.Column[document.ENIItem] {
	number := func(name, header, title string, of func(item) int) query.Column[item] {
		return query.Column[item]{
			Name: name, Header: header, Title: title, Right: true,
			Text:   func(e item) string { return show.Count(of(e)) },
			Number: func(e item) (float64, bool) { return float64(of(e)), true },
		}
	}
	drop := func(c query.Column[item], first int) query.Column[item] { c.Drop = first; return c }
	columns := []query.Column[item]{
		{Name: "eni", Header: "ENI", Title: "ID of the ENI", Text: func(e item) string { return show.Safe(e.ID) }},
		drop(number("card", "CARD", "network card index", func(e item) int { return e.Card }), 5),
		drop(number("device", "DEVICE", "device index on the card", func(e item) int { return e.Device }), 2),
		{Name: "kind", Header: "KIND", Drop: 1, Title: "primary, secondary, trunk, efa, excluded", Text: func(e item) string { return Kind(e.NodeENI) }},
		number("assigned", "ASSIGNED", "addresses assigned to pods", func(e item) int { return e.Assigned }),
		number("cooling", "COOLING", "addresses cooling down after their pod was deleted", func(e item) int { return e.Cooling }),
		number("free", "FREE", "addresses available to new pods", func(e item) int { return e.Free }),
		drop(number("total", "TOTAL", "addresses in the pool", func(e item) int { return e.Total }), 6),
		query.Count("prefixes", "PREFIXES", "prefixes held", 7, func(e item) *int {
			if e.CIDRs == nil && e.Total > 0 {
				return nil // only its summary was read
			}
			return &e.Prefixes
		}),
		{Name: "table", Header: "TABLE", Title: "route table of its traffic, 254 is main", Right: true, Drop: 3,
			Text: func(e item) string { return show.Int(e.RouteTable) }, Number: func(e item) (float64, bool) { return query.Number(e.RouteTable) }},
		{Name: "subnet", Header: "SUBNET", Title: "subnet of the ENI", Drop: 4, Text: func(e item) string { return show.Safe(show.OrUnknown(e.SubnetID)) }},
		{Name: "cidrs", Header: "CIDRS", Title: "secondary IPs and prefixes", Wide: true, Text: func(e item) string { return cidrs(e.NodeENI) }},
	}
	if several {
		columns = slices.Insert(columns, 0, query.Column[item]{Name: "node", Header: "NODE", Title: "node", Text: func(e item) string { return show.Safe(e.Node) }})
	}
	return columns
}

func cidrs(e introspect.NodeENI) string {
	texts := make([]string, len(e.CIDRs))
	for i, c := range e.CIDRs {
		texts[i] = c.CIDR.String()
	}
	return show.OrUnknown(strings.Join(texts, ","))
}

// Kind is the kind of an ENI.
func Kind(e introspect.NodeENI) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{e.Primary, "primary"}, {e.Trunk, "trunk"}, {e.EFA, "efa"}, {e.Excluded, "excluded"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "secondary"
	}
	return strings.Join(words, ",")
}
