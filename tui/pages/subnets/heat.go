package subnets

import (
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
)

// Cells of the map. Signs differ in shape, not only in colour.
var (
	cellUsed     = draw.CellOf(draw.BarUsed)
	cellHeld     = draw.CellOf(draw.BarFree)
	cellOthers   = draw.CellOf(draw.BarOthers)
	cellFree     = draw.CellOf(draw.BarRoom)
	cellUnknown  = draw.Cell{Glyph: "?", ASCII: "?", Role: draw.Faint}
	cellMixed    = draw.Cell{Glyph: "×", ASCII: "x", Role: draw.Warn}
	cellPrimary  = draw.Cell{Glyph: "○", ASCII: "o", Role: draw.Info}
	cellReserved = draw.Cell{Glyph: "R", ASCII: "R", Role: draw.Faint}
)

// heat says how the addresses of a subnet are drawn.
type heat struct {
	of       store.SubnetUse
	cells    []inventory.SubnetCell
	prefixes bool // prefixes are in use, so that fragmented blocks matter

	// Of the addresses that no node holds, EC2 says only how many are free. They are drawn first, those
	// of others behind them, from edge on.
	edge  int
	known bool // EC2 has said it
}

func heatOf(u store.SubnetUse, cells []inventory.SubnetCell) heat {
	h := heat{of: u, cells: cells, prefixes: inventory.CountBlocks(cells, store.BlockPrefix) > 0, known: u.Available != nil}
	size := len(cells) * blockSize
	h.edge = size
	if others := inventory.OtherAddresses(u); h.known && (others != nil && *others > 0 || *u.Available <= 0) {
		h.edge = edge(cells, max(*u.Available, 0))
	}
	return h
}

// blockSize is the number of addresses of a /28.
const blockSize = 16

// edge returns the position in the subnet before which free addresses are not held by a node.
func edge(cells []inventory.SubnetCell, free int) int {
	for i, c := range cells {
		if room := blockSize - c.Held; free > room {
			free -= room
			continue
		}
		return i*blockSize + c.Held + free
	}
	return len(cells) * blockSize
}

// rest is the cell of an address that no node holds.
func (h heat) rest(at int) draw.Cell {
	switch {
	case !h.known:
		return cellUnknown
	case at >= h.edge:
		return cellOthers
	}
	return cellFree
}

// block draws a /28: what pods use, what nodes only hold, and the rest.
func (h heat) block(i int, into []draw.Cell) {
	b := h.cells[i]
	share := func(n int) int { return min((n*len(into)+blockSize-1)/blockSize, len(into)) }
	used, held := share(b.Used), share(b.Held)
	for j := range into {
		switch {
		case j < used:
			into[j] = cellUsed
		case j < held:
			into[j] = cellHeld
		default:
			into[j] = h.rest(i*blockSize + j*blockSize/len(into))
		}
	}
	mark := func(c draw.Cell) { // the block's first address
		for j := range share(1) {
			into[j] = c
		}
	}
	switch b.Use {
	case store.BlockPrimary:
		mark(cellPrimary)
	case inventory.ReservedBlock:
		mark(cellReserved)
	case store.BlockMixed:
		if h.prefixes {
			mark(cellMixed)
		}
	}
}

// sign is a sign of the map, what it means and how often.
type sign struct {
	cell  draw.Cell
	count int
	words string
}

// signs returns the legend of the map.
func (h heat) signs() []sign {
	out := []sign{{cellUsed, h.of.Held - h.of.Wasted, "used"}, {cellHeld, h.of.Wasted, "held free"}}
	others := inventory.OtherAddresses(h.of)
	switch {
	case h.of.Available == nil:
		out = append(out, sign{cellUnknown, inventory.Usable(h.of.Range) - h.of.Held, "not held by any node"})
	default:
		if others != nil && *others > 0 {
			out = append(out, sign{cellOthers, *others, "others, place unknown"})
		}
		out = append(out, sign{cellFree, max(*h.of.Available, 0), "free"})
	}
	if n := inventory.CountBlocks(h.cells, store.BlockMixed); h.prefixes && n > 0 {
		out = append(out, sign{cellMixed, n, "fragmented /28s"})
	}
	if n := inventory.CountBlocks(h.cells, store.BlockPrimary); n > 0 {
		out = append(out, sign{cellPrimary, n, "/28s with ENIs' own"})
	}
	return append(out, sign{cellReserved, 5, "reserved by EC2"})
}
