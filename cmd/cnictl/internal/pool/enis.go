// Package pool lists what pools hold, of one node or of several: ENIs and addresses in rows.
package pool

import (
	"strings"

	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
)

// NewENIList is the list of ENIs of one node, or of several with their names.
func NewENIList(several bool) *output.List[introspect.ENIItem] {
	return &output.List[introspect.ENIItem]{
		Columns: eniColumns(several), Free: "subnet",
		Key:  func(e introspect.ENIItem) string { return e.Node + "\x00" + e.ID },
		Item: func(e introspect.ENIItem) any { return e },
	}
}

func eniColumns(several bool) []query.Column[introspect.ENIItem] {
	type item = introspect.ENIItem
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
		{Name: "kind", Header: "KIND", Drop: 1, Title: "primary, secondary, trunk, efa, excluded", Text: func(e item) string { return kind(e.NodeENI) }},
		number("assigned", "ASSIGNED", "addresses that pods have", func(e item) int { return e.Assigned }),
		number("cooling", "COOLING", "addresses cooling down after their pod was deleted", func(e item) int { return e.Cooling }),
		number("free", "FREE", "addresses available to new pods", func(e item) int { return e.Free }),
		drop(number("total", "TOTAL", "addresses in the pool", func(e item) int { return e.Total }), 6),
		drop(number("prefixes", "PREFIXES", "prefixes held", func(e item) int { return e.Prefixes }), 7),
		{Name: "table", Header: "TABLE", Title: "route table of its traffic, 254 is main", Right: true, Drop: 3,
			Text: func(e item) string { return show.Int(e.RouteTable) }, Number: func(e item) (float64, bool) { return query.Number(e.RouteTable) }},
		{Name: "subnet", Header: "SUBNET", Title: "subnet of the ENI", Drop: 4, Text: func(e item) string { return show.Safe(show.OrUnknown(e.SubnetID)) }},
		{Name: "cidrs", Header: "CIDRS", Title: "secondary IPs and prefixes", Wide: true, Text: func(e item) string { return cidrsOf(e.NodeENI) }},
	}
	if several {
		columns = append([]query.Column[item]{nodeColumn(func(e item) string { return e.Node })}, columns...)
	}
	return columns
}

// nodeColumn names the node of a row.
func nodeColumn[T any](of func(T) string) query.Column[T] {
	return query.Column[T]{Name: "node", Header: "NODE", Title: "node", Text: func(row T) string { return show.Safe(of(row)) }}
}

func cidrsOf(e introspect.NodeENI) string {
	cidrs := make([]string, len(e.CIDRs))
	for i, c := range e.CIDRs {
		cidrs[i] = c.CIDR.String()
	}
	return show.OrUnknown(strings.Join(cidrs, ","))
}

// ENIItems are the ENIs of a node with its name.
func ENIItems(n introspect.NodeIPAM) []introspect.ENIItem {
	items := make([]introspect.ENIItem, len(n.ENIs))
	for i, e := range n.ENIs {
		items[i] = introspect.ENIItem{Node: n.Metadata.Name, NodeENI: e}
	}
	return items
}

// ENITable is the list of ENIs within the page of a node.
func ENITable(enis []introspect.NodeENI, wide bool) table.Table {
	t := table.Table{}
	var columns []query.Column[introspect.ENIItem]
	for _, c := range eniColumns(false) {
		if wide || !c.Wide {
			columns = append(columns, c)
			t.Columns = append(t.Columns, table.Column{Name: c.Header, Right: c.Right, Drop: c.Drop, Free: c.Name == "subnet"})
		}
	}
	for _, e := range enis {
		row := make([]table.Cell, len(columns))
		for i, c := range columns {
			row[i].Text = c.Text(introspect.ENIItem{NodeENI: e})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// kind names what an ENI is.
func kind(e introspect.NodeENI) string {
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
