package subnets

import (
	"time"

	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/keymap"
)

// board is the map of a subnet, as the body of its pane.
type board struct {
	cells  []inventory.SubnetCell // block i of the subnet's range
	cursor int
	wide   int // blocks in a row, as last drawn
}

// Do carries out cursor moves among the blocks.
func (b *board) Do(action string, _ time.Time) bool {
	page := b.wide * 8
	by, ok := map[string]int{
		keymap.Up: -b.wide, keymap.Down: b.wide, keymap.PageUp: -page, keymap.PageDown: page,
		keymap.HalfUp: -page / 2, keymap.HalfDown: page / 2, keymap.First: -len(b.cells), keymap.Last: len(b.cells),
		keymap.PrevBlock: -1, keymap.NextBlock: 1,
	}[action]
	if ok {
		b.move(by)
	}
	return ok
}

// Wheel moves by rows of the map.
func (b *board) Wheel(rows int, _ time.Time) { b.move(rows * b.wide) }

// Click selects nothing, so a click only focuses the map: a cell is too small to hit.
func (*board) Click(int, int, time.Time) bool { return false }

func (b *board) move(by int) { b.cursor = max(min(b.cursor+by, len(b.cells)-1), 0) }
