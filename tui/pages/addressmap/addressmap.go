package addressmap

import (
	"net/netip"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/components"
	"cnictl/tui/theme"
)

// Cells of address maps, with the same signs as in bars and charts.
var (
	Used    = components.CellOf(theme.BarUsed)
	Cooling = components.CellOf(theme.BarCooling)
	Free    = components.CellOf(theme.BarFree)
	Empty   = components.CellOf(theme.BarRoom)
)

// Signs writes the legend of a map. If empty is true, it includes cells that hold nothing.
func Signs(l *components.Line, s components.Style, empty bool) {
	if s.Linear {
		return
	}
	signs := []struct {
		cell components.Cell
		word string
	}{{Used, "used"}, {Cooling, "cooling"}, {Free, "free"}, {Empty, "empty"}}
	if !empty {
		signs = signs[:3]
	}
	for _, sign := range signs {
		l.Drawn(components.Strip(s, []components.Cell{sign.cell}), 1).Add(theme.Faint, " "+sign.word+"  ")
	}
}

// maxStrip is the size of the largest block that is drawn address by address.
const maxStrip = 16

// Cells draws a block address by address; nil if the block is too large.
func Cells(c introspect.NodeCIDR) []components.Cell {
	bits := c.CIDR.Addr().BitLen() - c.CIDR.Bits()
	if bits < 0 || bits > 4 {
		return nil
	}
	cells := make([]components.Cell, 1<<bits)
	for i := range cells {
		cells[i] = Free
	}
	for _, a := range c.Addresses {
		i, ok := offset(c.CIDR, a.Address)
		if !ok {
			continue
		}
		cells[i] = stateCell(a.State)
	}
	return cells
}

func stateCell(state string) components.Cell {
	switch state {
	case introspect.AddressAssigned:
		return Used
	case introspect.AddressCooling:
		return Cooling
	}
	return Free
}

// offset returns the index of an address in a block of at most maxStrip addresses.
func offset(p netip.Prefix, a netip.Addr) (int, bool) {
	if !p.Contains(a) {
		return 0, false
	}
	raw := a.AsSlice()
	return int(raw[len(raw)-1]) & (maxStrip - 1) & (1<<(a.BitLen()-p.Bits()) - 1), true
}
