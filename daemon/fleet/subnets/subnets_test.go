package subnets

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/fleet/store"
)

// falling makes readings so far apart.
func falling(apart time.Duration, free ...int) Trend {
	start := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	var t Trend
	for i, n := range free {
		t = t.Take(Reading{start.Add(time.Duration(i) * apart), n})
	}
	return t
}

func TestTrend_Project(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		of   Trend
		left string
	}{
		"falls steadily":    {falling(10*time.Minute, 1000, 990, 981, 970, 960, 950), "~15h left"},
		"two readings":      {falling(time.Hour, 1000, 10), ""},
		"too short a time":  {falling(time.Minute, 1000, 990, 980, 970, 960, 950), ""},
		"too small a fall":  {falling(time.Hour, 1000, 999, 998, 997, 996, 995), ""},
		"up and down":       {falling(10*time.Minute, 1000, 700, 950, 650, 900, 600), ""},
		"grows":             {falling(10*time.Minute, 900, 910, 920, 930, 940, 950), ""},
		"further than week": {falling(time.Hour, 60000, 59998, 59996, 59994, 59992, 59990), ""},
	} {
		if got := x.of.Project().Words(); got != x.left {
			t.Errorf("%s: %q, want %q", name, got, x.left)
		}
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	free, none := 40, 0
	u := store.SubnetUse{Range: netip.MustParsePrefix("10.0.3.0/24"), Held: 20, Blocks: []store.Block{
		{Prefix: netip.MustParsePrefix("10.0.3.32/28"), Use: store.BlockPrefix, Node: "a"},
		{Prefix: netip.MustParsePrefix("10.0.3.240/28"), Use: store.BlockPrimary},
	}}
	u.Available = &free
	blocks := Blocks(u)
	if len(blocks) != 16 || blocks[0] != Reserved || blocks[2] != store.BlockPrefix || blocks[15] != store.BlockPrimary || Count(blocks, 0) != 13 {
		t.Errorf("blocks %v", blocks)
	}
	if b, ok := BlockAt(u, 2); !ok || b.Node != "a" {
		t.Errorf("block 2 is %+v", b)
	}
	if n := Free(u); n == nil || *n != 2 {
		t.Errorf("free %v, want the 2 that 40 addresses fill", n)
	}
	if n := Others(u); n == nil || *n != 251-40-20 || Short(u) {
		t.Errorf("others %v, short %v", n, Short(u))
	}
	u.Available = &none
	if !Short(u) {
		t.Error("a subnet without a free address is not short")
	}
	for _, bad := range []string{"0.0.0.0/0", "10.0.0.0/15", "10.0.0.0/29", "2001:db8::/64"} {
		if Blocks(store.SubnetUse{Range: netip.MustParsePrefix(bad)}) != nil {
			t.Errorf("a map of %s", bad)
		}
	}
}
