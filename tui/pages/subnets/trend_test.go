package subnets

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/fleet/store"
	"cnictl/tui/source/sourcetest"
)

// falling makes readings so many minutes apart.
func falling(apart time.Duration, free ...int) trend {
	var t trend
	for i, n := range free {
		t = t.take(reading{sourcetest.Start().Add(time.Duration(i) * apart), n})
	}
	return t
}

func TestTrend_Forecast(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		of   trend
		left string
	}{
		"falls steadily":    {falling(10*time.Minute, 1000, 990, 981, 970, 960, 950), "~15h left"},
		"two readings":      {falling(time.Hour, 1000, 10), ""},
		"too short a time":  {falling(time.Minute, 1000, 990, 980, 970, 960, 950), ""},
		"too small a fall":  {falling(time.Hour, 1000, 999, 998, 997, 996, 995), ""},
		"up and down":       {falling(10*time.Minute, 1000, 700, 950, 650, 900, 600), ""},
		"grows":             {falling(10*time.Minute, 900, 910, 920, 930, 940, 950), ""},
		"does not change":   {falling(10*time.Minute, 900, 900, 900, 900, 900, 900), ""},
		"further than week": {falling(time.Hour, 60000, 59998, 59996, 59994, 59992, 59990), ""},
		"nothing":           {nil, ""},
	} {
		if got := x.of.project().left(); got != x.left {
			t.Errorf("%s: %q, want %q (%+v)", name, got, x.left, x.of.project())
		}
		if x.of.words() == "" {
			t.Errorf("%s: no words", name)
		}
	}
}

func TestTrend_TakesNewReadingsAlone(t *testing.T) {
	t.Parallel()
	tr := falling(time.Minute, 5, 4)
	if n := len(tr.take(reading{sourcetest.Start(), 9})); n != 2 {
		t.Errorf("an old reading was taken: %d", n)
	}
	for i := range 3 * keep {
		tr = tr.take(reading{sourcetest.Start().Add(time.Duration(i) * time.Hour), i})
	}
	if len(tr) != keep {
		t.Errorf("%d readings are kept", len(tr))
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	u := store.SubnetUse{Range: netip.MustParsePrefix("10.0.3.7/24"), Blocks: []store.Block{
		{Prefix: netip.MustParsePrefix("10.0.2.0/28"), Use: store.BlockMixed}, // of another subnet
		{Prefix: netip.MustParsePrefix("10.0.3.32/28"), Use: store.BlockPrefix, Node: "a"},
		{Prefix: netip.MustParsePrefix("10.0.3.240/28"), Use: store.BlockPrimary},
	}}
	cells := blocksOf(u)
	want := make([]uint8, 16)
	want[0], want[2], want[15] = blockReserved, uint8(store.BlockPrefix), uint8(store.BlockPrimary)
	for i := range want {
		if cells[i] != want[i] {
			t.Errorf("block %d is %d, want %d", i, cells[i], want[i])
		}
		if back, ok := indexOf(u.Range, prefixOf(u.Range, i)); !ok || back != i {
			t.Errorf("block %d is at %d", i, back)
		}
	}
	if b, ok := block(u, 2); !ok || b.Node != "a" {
		t.Errorf("block 2 is %+v", b)
	}
	for _, bad := range []string{"0.0.0.0/0", "10.0.0.0/15", "10.0.0.0/29", "2001:db8::/64"} {
		if blocksOf(store.SubnetUse{Range: netip.MustParsePrefix(bad)}) != nil {
			t.Errorf("a map of %s", bad)
		}
	}
	if blocksOf(store.SubnetUse{}) != nil {
		t.Error("a map of nothing")
	}
}
