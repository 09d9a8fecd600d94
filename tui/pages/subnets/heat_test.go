package subnets

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
)

// TestHeat: every address is drawn as what it is; a subnet without a free address has no cell that looks
// free, and one whose count is not known none that looks like anything.
func TestHeat(t *testing.T) {
	t.Parallel()
	of := func(available int, blocks ...store.Block) store.SubnetUse {
		u := store.SubnetUse{Subnet: introspect.Subnet{CIDR: "10.0.0.0/24", Available: &available}, Range: netip.MustParsePrefix("10.0.0.0/24"), Blocks: blocks}
		for _, b := range blocks {
			u.Held += b.Held
			u.Wasted += b.Held - b.Used
		}
		return u
	}
	at := func(cidr string, use store.BlockUse, held, used int) store.Block {
		return store.Block{Prefix: netip.MustParsePrefix(cidr), Use: use, Held: held, Used: used}
	}
	unknown := of(0)
	unknown.Available = nil
	prefix, mixed := at("10.0.0.64/28", store.BlockPrefix, 16, 10), at("10.0.0.128/28", store.BlockMixed, 3, 3)
	for name, x := range map[string]struct {
		of                               store.SubnetUse
		used, held, others, free, unread int
		mixed                            int
	}{
		"empty":        {of(251), 0, 0, 0, 254, 0, 0},
		"full":         {of(0), 0, 0, 254, 0, 0, 0},
		"unknown":      {unknown, 0, 0, 0, 0, 254, 0},
		"some":         {of(100, prefix), 10, 6, 254 - 16 - 99, 99, 0, 0},
		"fragmented":   {of(100, prefix, mixed), 12, 6, 254 - 16 - 3 - 99, 99, 0, 1},
		"no prefixes":  {of(100, mixed), 3, 0, 254 - 3 - 99, 99, 0, 0},
		"EC2 is older": {of(250, prefix), 10, 6, 0, 238, 0, 0},
	} {
		h := heatOf(x.of, inventory.SubnetCells(x.of))
		counts := map[draw.Cell]int{}
		for i := range h.cells {
			into := make([]draw.Cell, blockSize)
			h.block(i, into)
			for _, c := range into {
				counts[c]++
			}
		}
		want := map[draw.Cell]int{
			cellUsed: x.used, cellHeld: x.held, cellOthers: x.others, cellFree: x.free, cellUnknown: x.unread, cellMixed: x.mixed, cellReserved: 2,
		}
		for cell, n := range want {
			if counts[cell] != n {
				t.Errorf("%s: %d cells of %s, want %d", name, counts[cell], cell.Glyph, n)
			}
		}
	}
}

// TestSlope: the readings fill the past, and the line to zero ends at the right edge.
func TestSlope(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	trend := inventory.Trend{{At: start, Free: 100}, {At: start.Add(time.Hour), Free: 50}}
	for _, x := range []struct {
		left   time.Duration
		future int
	}{{0, 60}, {time.Hour, 30}, {time.Minute, 40}, {100 * time.Hour, 20}} {
		values, future := slope{trend, x.left}.points(60)
		if future != x.future || values[0] != 100 || values[future-1] != 50 {
			t.Errorf("%s: the future begins at %d, %v", x.left, future, values)
		}
		if last := values[59]; x.left > 0 && last != 0 {
			t.Errorf("%s: %v are left at the end", x.left, last)
		}
	}
	if lines := (slope{trend[:1], 0}).lines(draw.Style{Theme: draw.PlainTheme()}, 60, 5); lines != nil {
		t.Errorf("one reading is no trend: %q", lines)
	}
}
