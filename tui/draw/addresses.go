package draw

import (
	"net/netip"

	"cnictl/daemon/api/introspect"
)

// Cells of address maps, with the same signs as in bars and charts.
var (
	CellUsed    = CellOf(BarUsed)
	CellCooling = CellOf(BarCooling)
	CellFree    = CellOf(BarFree)
	CellEmpty   = CellOf(BarRoom)
)

// AddressSigns writes the legend of a map. If empty is true, it includes cells that hold nothing.
func AddressSigns(l *Line, s Style, empty bool) {
	if s.Linear {
		return
	}
	signs := []struct {
		cell Cell
		word string
	}{{CellUsed, "used"}, {CellCooling, "cooling"}, {CellFree, "free"}, {CellEmpty, "empty"}}
	if !empty {
		signs = signs[:3]
	}
	for _, sign := range signs {
		l.Drawn(Strip(s, []Cell{sign.cell}), 1).Add(Faint, " "+sign.word+"  ")
	}
}

// maxStrip is the size of the largest block that is drawn address by address.
const maxStrip = 16

// AddressCells draws a block address by address; nil if the block is too large.
func AddressCells(c introspect.NodeCIDR) []Cell {
	bits := c.CIDR.Addr().BitLen() - c.CIDR.Bits()
	if bits < 0 || bits > 4 {
		return nil
	}
	cells := make([]Cell, 1<<bits)
	for i := range cells {
		cells[i] = CellFree
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

func stateCell(state string) Cell {
	switch state {
	case introspect.AddressAssigned:
		return CellUsed
	case introspect.AddressCooling:
		return CellCooling
	}
	return CellFree
}

// offset returns the index of an address in a block of at most maxStrip addresses.
func offset(p netip.Prefix, a netip.Addr) (int, bool) {
	if !p.Contains(a) {
		return 0, false
	}
	raw := a.AsSlice()
	return int(raw[len(raw)-1]) & (maxStrip - 1) & (1<<(a.BitLen()-p.Bits()) - 1), true
}
