package store

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
)

// falling makes readings so far apart.
func falling(apart time.Duration, free ...int) Readings {
	var r Readings
	for i, n := range free {
		at := t0.Add(time.Duration(i) * apart)
		r = r.Take(SubnetUse{Subnet: introspect.Subnet{Available: &n, AsOf: &at}})
	}
	return r
}

func TestReadings_Forecast(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		of   Readings
		left time.Duration
	}{
		"falls steadily":    {falling(10*time.Minute, 1000, 990, 980, 970, 960, 950), 15*time.Hour + 50*time.Minute},
		"two readings":      {falling(time.Hour, 1000, 10), 0},
		"too short a time":  {falling(time.Minute, 1000, 990, 980, 970, 960, 950), 0},
		"too small a fall":  {falling(time.Hour, 1000, 999, 998, 997, 996, 995), 0},
		"up and down":       {falling(10*time.Minute, 1000, 700, 950, 650, 900, 600), 0},
		"grows":             {falling(10*time.Minute, 900, 910, 920, 930, 940, 950), 0},
		"does not change":   {falling(10*time.Minute, 900, 900, 900, 900, 900, 900), 0},
		"further than week": {falling(time.Hour, 60000, 59998, 59996, 59994, 59992, 59990), 0},
		"nothing":           {nil, 0},
	} {
		if got := x.of.Forecast(); got.Left.Round(time.Second) != x.left {
			t.Errorf("%s: %+v, want %v left", name, got, x.left)
		}
	}
}

func TestReadings_Take(t *testing.T) {
	t.Parallel()
	r := falling(time.Minute, 5, 4)
	for _, u := range []introspect.Subnet{{Available: ptr(9), AsOf: ptr(t0)}, {Available: ptr(9)}, {AsOf: ptr(after(999))}} {
		if n := len(r.Take(SubnetUse{Subnet: u})); n != 2 {
			t.Errorf("%+v was taken", u)
		}
	}
	for i := range 3 * ReadingsLen {
		r = r.Take(SubnetUse{Subnet: introspect.Subnet{Available: &i, AsOf: ptr(after(3600 * (i + 1)))}})
	}
	if len(r) != ReadingsLen || r[len(r)-1].Free != 3*ReadingsLen-1 {
		t.Errorf("%d readings are kept", len(r))
	}
}

func TestSubnetUse_Map(t *testing.T) {
	t.Parallel()
	u := SubnetUse{Range: netip.MustParsePrefix("10.0.3.7/24"), Blocks: []Block{
		{Prefix: netip.MustParsePrefix("10.0.2.0/28"), Use: BlockMixed}, // of another subnet
		{Prefix: netip.MustParsePrefix("10.0.3.32/28"), Use: BlockPrefix, Node: "a"},
		{Prefix: netip.MustParsePrefix("10.0.3.240/28"), Use: BlockPrimary},
	}}
	want := make([]BlockUse, 16)
	want[0], want[2], want[15] = BlockReserved, BlockPrefix, BlockPrimary
	if got := u.Map(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n, ok := u.CountBlocks(); !ok || n != (BlockCounts{Unknown: 13, Prefix: 1, Primary: 1, Reserved: 1}) {
		t.Errorf("%+v", n)
	}
	for i := range want {
		if back, ok := u.Index(u.Place(i)); !ok || back != i {
			t.Errorf("block %d is at %d", i, back)
		}
	}
	if b, ok := u.Block(2); !ok || b.Node != "a" {
		t.Errorf("block 2 is %+v", b)
	}
	if b, ok := u.Block(3); ok {
		t.Errorf("block 3 is %+v", b)
	}
}

func TestSubnetUse_Size(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		cidr       string
		free, held int
		size       int
		full       float64
		short      bool
		others     *int
	}{
		{"10.0.0.0/24", 251, 0, 251, 0, false, ptr(0)},
		{"10.0.0.0/24", 51, 100, 251, 0.7968, false, ptr(100)},
		{"10.0.0.0/24", 0, 251, 251, 1, true, ptr(0)},
		{"10.0.0.0/24", 10, 300, 251, 0.9602, true, nil}, // what nodes hold and EC2's count are of two times
		{"10.0.0.0/24", 9999, 0, 251, 0, false, nil},     // EC2 does not tell that
		{"10.0.0.0/28", 11, 0, 11, 0, false, ptr(0)},
		{"10.0.0.0/15", 9, 0, 0, 0, false, nil},
		{"10.0.0.0/29", 0, 0, 0, 0, true, nil},
		{"2001:db8::/64", 9, 0, 0, 0, false, nil},
		{"0.0.0.0/0", 9, 0, 0, 0, false, nil},
	} {
		u := SubnetUse{Subnet: introspect.Subnet{Available: &x.free}, Range: netip.MustParsePrefix(x.cidr), Held: x.held}
		full, ok := u.Full()
		if u.Size() != x.size || full < x.full-1e-4 || full > x.full+1e-4 || ok != (x.size > 0) || u.Short() != x.short || !cmp.Equal(u.Others(), x.others) {
			t.Errorf("%s %d free: size %d, full %v %v, short %v, others %v", x.cidr, x.free, u.Size(), full, ok, u.Short(), u.Others())
		}
		if (u.Map() != nil) != (x.size > 0) {
			t.Errorf("%s: map %v", x.cidr, u.Map())
		}
	}
	none := SubnetUse{Range: netip.MustParsePrefix("10.0.0.0/24")}
	if _, ok := none.Full(); ok || none.Short() || none.Others() != nil {
		t.Errorf("%+v knows more than it was told", none)
	}
	if _, ok := (SubnetUse{}).CountBlocks(); ok || (SubnetUse{}).Map() != nil {
		t.Error("a map of nothing")
	}
}

func TestTrunksOf(t *testing.T) {
	t.Parallel()
	with := func(name string, trunk *introspect.Trunk, advertised *int) introspect.NodeIPAM {
		n := sample(name, t0, 1, 0, 1)
		n.Summary.Trunk, n.Object = trunk, &introspect.NodeObject{Zone: "eu-1a", BranchENIs: advertised}
		return n
	}
	trunks := TrunksOf([]introspect.NodeIPAM{
		with("attached", &introspect.Trunk{Enabled: true, ENIID: "eni-1", BranchUsed: ptr(5), BranchLimit: ptr(9)}, ptr(9)),
		with("awaited", &introspect.Trunk{Enabled: true}, ptr(9)),
		with("unsupported", &introspect.Trunk{Enabled: true, Supported: ptr(false)}, nil),
		with("off", &introspect.Trunk{ENIID: "eni-2"}, nil),
		with("untold", nil, ptr(18)),
		with("none", &introspect.Trunk{}, nil),
		with("nothing", nil, ptr(0)),
		failed("unread", introspect.ReasonTimeout),
	}, t0)
	got := map[string]TrunkState{}
	for _, u := range trunks {
		got[u.Node] = u.State
	}
	want := map[string]TrunkState{"attached": TrunkAttached, "awaited": TrunkAwaited, "unsupported": TrunkUnsupported, "off": TrunkOff, "untold": TrunkUntold}
	if !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	one := trunks[0]
	if share, ok := one.Share(); !ok || share < 0.55 || share > 0.56 || *one.Left() != 4 || *one.Unclaimed(3) != 2 || *one.Unclaimed(7) != 0 || one.Zone != "eu-1a" || one.Stale {
		t.Errorf("%+v", one)
	}
	untold := trunks[len(trunks)-1]
	if _, ok := untold.Share(); ok || untold.Left() != nil || untold.Unclaimed(0) != nil || *untold.Limit != 18 {
		t.Errorf("%+v", untold)
	}
}

// TestOf: what is read once is what a watched fleet would show of the same samples.
func TestOf(t *testing.T) {
	t.Parallel()
	var samples []introspect.NodeIPAM
	s := New()
	for i := range 20 {
		samples = append(samples, big(19-i, t0))
		s.PutAt(big(i, t0), t0)
	}
	v, want := Of(samples, t0), s.View()
	if !cmp.Equal(v.Subnets, want.Subnets, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })) || !cmp.Equal(v.Totals, want.Totals) || len(v.Nodes) != 20 {
		t.Errorf("%s", cmp.Diff(v.Totals, want.Totals))
	}
	if got := SubnetsOf(samples, t0); len(got) != len(want.Subnets) || got[0].Held != want.Subnets[0].Held {
		t.Errorf("%+v", got)
	}
}
