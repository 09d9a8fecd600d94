package trunks

import (
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/tables"
)

type row = document.TrunkItem

// newList is the list of nodes.
func newList() *output.List[row] {
	return &output.List[row]{
		Columns: tables.Trunks(), Class: class, Free: "pods",
		Key: func(r row) string { return r.Node }, Whole: true,
		Item: func(r row) any { return r },
	}
}

// class is the colour of a cell, by its meaning.
func class(r row, column string) paint.Class {
	taken, known := inventory.BranchShare(r)
	switch {
	case column == "state" && r.State == document.TrunkAttached:
		return paint.OK
	case column == "state", column == "waiting" && r.Waiting != nil && *r.Waiting > 0:
		return paint.Warn
	case (column == "used" || column == "left") && known && taken >= 1:
		return paint.Bad
	case column == "trunk", column == "type":
		return paint.Dim
	}
	return paint.Plain
}
