package list

import (
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/tables"
)

// ENIs returns a list of ENIs of one node, or of several with their names.
func ENIs(several bool) *output.List[document.ENIItem] {
	return &output.List[document.ENIItem]{
		Columns: tables.ENIs(several), Free: "subnet",
		Key:  func(e document.ENIItem) string { return e.Node + "\x00" + e.ID },
		Item: func(e document.ENIItem) any { return e },
	}
}

// Addresses returns a list of addresses of one node, or of several with their names.
func Addresses(several bool) *output.List[inventory.HeldAddress] {
	return &output.List[inventory.HeldAddress]{
		Columns: tables.Addresses(several), In: func(a inventory.HeldAddress) string { return a.PodNamespace }, Free: "pod",
		Clocks: []string{"for"},
		Key: func(a inventory.HeldAddress) string {
			return a.Node + "\x00" + a.Address + "\x00" + a.PodNamespace + "/" + a.PodName
		},
		Item: func(a inventory.HeldAddress) any { return a.AddressItem },
		Class: func(a inventory.HeldAddress, column string) paint.Class {
			if column == "state" {
				return addressClass(a.State)
			}
			return paint.Plain
		},
	}
}

func addressClass(state string) paint.Class {
	switch state {
	case introspect.AddressAssigned:
		return paint.Assigned
	case introspect.AddressCooling:
		return paint.Cooling
	}
	return paint.Free
}

// ENITable returns the table of ENIs on the page of a node.
func ENITable(held []introspect.NodeENI, wide bool) table.Table {
	return output.TableOf(query.Usual(tables.ENIs(false), wide), inventory.ENIItems("", held), nil, "subnet")
}
