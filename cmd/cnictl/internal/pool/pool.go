// Package pool lists what pools hold, of one node or of several: ENIs and addresses in rows.
package pool

import (
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/enis"
	"cnictl/daemon/fleet/query"
)

// NewENIList is the list of ENIs of one node, or of several with their names.
func NewENIList(several bool) *output.List[introspect.ENIItem] {
	return &output.List[introspect.ENIItem]{
		Columns: enis.Columns(several), Free: "subnet",
		Key:  func(e introspect.ENIItem) string { return e.Node + "\x00" + e.ID },
		Item: func(e introspect.ENIItem) any { return e },
	}
}

// ENITable is the list of ENIs within the page of a node.
func ENITable(held []introspect.NodeENI, wide bool) table.Table {
	t := table.Table{}
	var columns []query.Column[introspect.ENIItem]
	for _, c := range enis.Columns(false) {
		if wide || !c.Wide {
			columns = append(columns, c)
			t.Columns = append(t.Columns, table.Column{Name: c.Header, Right: c.Right, Drop: c.Drop, Free: c.Name == "subnet"})
		}
	}
	for _, e := range held {
		row := make([]table.Cell, len(columns))
		for i, c := range columns {
			row[i].Text = c.Text(introspect.ENIItem{NodeENI: e})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
