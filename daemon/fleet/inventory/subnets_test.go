package inventory

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/capacity/subnet"
	"cnictl/daemon/fleet/store"
)

// falling returns readings at equal intervals.
func falling(apart time.Duration, free ...int) Trend {
	start := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	var t Trend
	for i, n := range free {
		t = append(t, Reading{At: start.Add(time.Duration(i) * apart), Free: n})
	}
	return t
}

func TestTrend_Project(t *testing.T) {
	t.Parallel()
	var days []int
	for i := range 49 {
		days = append(days, 1000-10*i+i%2)
	}
	steady := make([]int, 49)
	for i := range steady {
		steady[i] = 300
	}
	for name, x := range map[string]struct {
		of   Trend
		left string
	}{
		"falls steadily":    {falling(10*time.Minute, 1000, 990, 981, 970, 960, 950), "~16h, 6 readings"},
		"two readings":      {falling(time.Hour, 1000, 900), "~9h, 2 readings"},
		"a short time":      {falling(time.Minute, 1000, 990, 980, 970, 960, 950), "~95m, 6 readings"},
		"nodes that start":  {falling(time.Second, 4088, 4080), ""},
		"shortly after":     {falling(time.Minute, 4080, 4054), ">60m, 2 readings"},
		"none, soon":        {falling(time.Second, 8, 0), "none left"},
		"up and down":       {falling(10*time.Minute, 1000, 700, 950, 650, 900, 600), "~123m, 6 readings"},
		"grows":             {falling(10*time.Minute, 900, 910, 920, 930, 940, 950), "not falling, 6 readings"},
		"does not change":   {falling(10*time.Minute, 900, 900, 900), "not falling, 3 readings"},
		"nothing":           {nil, ""},
		"one reading":       {falling(time.Hour, 1000), ""},
		"one of none":       {falling(time.Hour, 0), "none left"},
		"further than week": {falling(time.Hour, 60000, 59998, 59996, 59994, 59992, 59990), ">7d, 6 readings"},
		"empty":             {falling(10*time.Minute, 33, 26, 20, 13, 7, 0), "none left"},
		"two days":          {falling(time.Hour, days...), "~53h, 52h to 53h"},
		"two steady days":   {falling(time.Hour, steady...), ">28d, 49 readings"},
	} {
		f := x.of.Project()
		if got := f.Words(); got != x.left {
			t.Errorf("%s: %q, want %q", name, got, x.left)
		}
		if _, ok := f.Seconds(); ok != (f.Left > 0 || f.Empty()) || f.Rough && f.Early+f.Late > 0 || f.Known() != (x.left != "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestTrend_Words(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]Trend{
		"":                                  falling(time.Hour, 10),
		"none left":                         falling(time.Hour, 0),
		"~16h, 6 readings (-60/h over 50m)": falling(10*time.Minute, 1000, 990, 981, 970, 960, 950),
		"none left (-39/h over 50m)":        falling(10*time.Minute, 33, 26, 20, 13, 7, 0),
		"not falling, 3 readings (no change over 20m)": falling(10*time.Minute, 900, 900, 900),
	} {
		if got := of.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTrendOf: the newest count ends the trend, once.
func TestTrendOf(t *testing.T) {
	t.Parallel()
	tr := falling(time.Minute, 5, 4)
	u := of("10.0.0.0/24", 3)
	u.Readings = store.Readings(tr)
	for at, want := range map[time.Duration]int{-time.Minute: 2, 0: 2, time.Second: 3} {
		asOf := tr[1].At.Add(at)
		u.AsOf = &asOf
		if got := TrendOf(u); len(got) != want || len(u.Readings) != 2 {
			t.Errorf("%s: %d readings, want %d", at, len(got), want)
		}
	}
}

func TestJoined(t *testing.T) {
	t.Parallel()
	all := falling(time.Hour, 9, 8, 7, 6, 5)
	if got := JoinTrends(all[:3], all[1:], all[:1]); !slices.Equal(got, all) {
		t.Errorf("%v", got)
	}
}

// of returns a subnet with this many free addresses, -1 if unknown.
func of(cidr string, free int) store.SubnetUse {
	u := store.SubnetUse{Range: netip.MustParsePrefix(cidr)}
	if free >= 0 {
		u.Available = &free
	}
	u.ID = cidr
	return u
}

// A subnet has an odd number of usable addresses, so no count hits the limit exactly: the
// share decides.
func TestNearlyFull_Edge(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]bool{0.9499: false, 0.95: true, 0.9501: true, 1: true} {
		if NearlyFull(share) != want {
			t.Errorf("%v: %v, want %v", share, !want, want)
		}
	}
	for _, x := range []struct {
		u       store.SubnetUse
		percent string
		short   bool
	}{
		{of("10.0.0.0/24", 13), "94%", false}, // of 251
		{of("10.0.0.0/24", 12), "95%", true},
		{of("10.0.0.0/24", 1), "99%", true},
		{of("10.0.0.0/24", 0), "100%", true},
		{of("10.0.0.0/24", 999), "0%", false}, // more than the subnet has
		{of("2001:db8::/64", 7), "", false},
		{of("2001:db8::/64", 0), "", true},
	} {
		if p, s := FullText(x.u), SubnetShort(x.u); p != x.percent || s != x.short {
			t.Errorf("%s with %d free: %s, short %v; want %s, %v", x.u.ID, *x.u.Available, p, s, x.percent, x.short)
		}
	}
}

func TestFullest(t *testing.T) {
	t.Parallel()
	all := []store.SubnetUse{of("10.0.0.0/24", -1), of("10.0.1.0/24", 200), of("10.0.3.0/24", 1), of("10.0.2.0/24", 1), of("2001:db8::/64", 0)}
	var got []string
	for _, u := range FullestSubnets(all) {
		got = append(got, u.ID)
	}
	if want := []string{"10.0.2.0/24", "10.0.3.0/24", "10.0.1.0/24"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	free, none := 40, 0
	u := store.SubnetUse{Range: netip.MustParsePrefix("10.0.3.7/24"), Held: 20, Blocks: []store.Block{
		{Prefix: netip.MustParsePrefix("10.0.2.0/28"), Use: store.BlockMixed}, // in another subnet
		{Prefix: netip.MustParsePrefix("10.0.3.32/28"), Use: store.BlockPrefix, Node: "a"},
		{Prefix: netip.MustParsePrefix("10.0.3.240/28"), Use: store.BlockPrimary},
	}}
	u.Available = &free
	cells := SubnetCells(u)
	if len(cells) != 16 || cells[0].Use != ReservedBlock || cells[2].Use != store.BlockPrefix || cells[15].Use != store.BlockPrimary || CountBlocks(cells, 0) != 13 {
		t.Errorf("cells %v", cells)
	}
	for i := range cells {
		if back, ok := indexOf(u.Range, PrefixAt(u.Range, i)); !ok || back != i {
			t.Errorf("block %d is at %d", i, back)
		}
	}
	if c := cells[2]; c.Node != "a" || c.Edge || !cells[15].Edge {
		t.Errorf("block 2 is %+v", c)
	}
	if n := FreeBlocks(u); n == nil || *n != 2 {
		t.Errorf("free %v, want the 2 that 40 addresses fill", n)
	}
	if n := OtherAddresses(u); n == nil || *n != 251-40-20 || SubnetShort(u) {
		t.Errorf("others %v, short %v", n, SubnetShort(u))
	}
	u.Available = &none
	if !SubnetShort(u) {
		t.Error("a subnet without a free address is not short")
	}
	for _, bad := range []string{"0.0.0.0/0", "10.0.0.0/15", "10.0.0.0/29", "2001:db8::/64"} {
		if SubnetCells(store.SubnetUse{Range: netip.MustParsePrefix(bad)}) != nil {
			t.Errorf("a map of %s", bad)
		}
	}
}

// TestLeft: addresses of nodes break the blocks that they are in; of other users only the
// number is known.
func TestLeft(t *testing.T) {
	t.Parallel()
	block := func(text string, use store.BlockUse, held int) store.Block {
		return store.Block{Prefix: netip.MustParsePrefix(text), Use: use, Held: held}
	}
	u := of("10.0.0.0/24", 251-3-16-2-1-20) // the last 20 belong to other users
	u.Blocks = []store.Block{
		block("10.0.0.0/28", store.BlockPrimary, 3), // with reserved addresses: never a prefix
		block("10.0.0.16/28", store.BlockPrefix, 16),
		block("10.0.0.32/28", store.BlockMixed, 2),
		block("10.0.0.48/28", store.BlockPrimary, 1),
		block("10.9.0.0/28", store.BlockMixed, 9), // in another subnet
	}
	got, ok := SubnetRoom(u)
	want := subnet.Subnet{CIDR: u.Range, Free: 209, Blocks: 14 - 3, Loose: 27 - 3 + 14 + 15, Used: 20}
	if !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, ok := SubnetRoom(of("10.0.0.0/24", -1)); ok {
		t.Error("an unknown count is one")
	}
	if _, ok := SubnetRoom(of("2001:db8::/64", 7)); ok {
		t.Error("an IPv6 subnet has one")
	}
	if got, _ := SubnetRoom(of("10.0.0.0/24", 9999)); got.Free != 251 || got.Used != 0 {
		t.Errorf("more free than there are: %+v", got)
	}
}
