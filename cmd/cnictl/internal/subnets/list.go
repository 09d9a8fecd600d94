package subnets

import (
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/tables"
)

type row = *inventory.Subnet

// newList is the list of subnets.
func newList() *output.List[row] {
	return &output.List[row]{
		Columns: tables.Subnets(), Class: class, Clocks: []string{"asof"}, Whole: true,
		Key:  func(r row) string { return r.ID },
		Item: func(r row) any { return Item(r) },
	}
}

// class is the colour of a cell, by its meaning.
func class(r row, column string) paint.Class {
	switch column {
	case "free", "full":
		if inventory.SubnetShort(r.SubnetUse) {
			return paint.Bad
		}
	case "left":
		if r.Forecast.Falls() {
			return paint.Warn
		}
	case "cidr", "zone", "asof":
		return paint.Dim
	}
	return paint.Plain
}
