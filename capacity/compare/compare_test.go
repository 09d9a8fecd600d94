package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/capacity/whatif"
)

func instance(t testing.TB, name string) limits.Instance {
	t.Helper()
	i, ok := limits.Lookup(name)
	if !ok {
		t.Fatalf("no type %s", name)
	}
	return i
}

func TestPlace(t *testing.T) {
	t.Parallel()
	large := func(change func(*whatif.Settings)) whatif.Settings {
		s := whatif.Settings{Instance: instance(t, "m5.large"), WarmENI: 1, WarmPrefix: 1}
		change(&s)
		return s
	}
	none := func(*whatif.Settings) {}
	for name, c := range map[string]struct {
		s    whatif.Settings
		d    Demand
		want Fleet
	}{
		// 3 interfaces with 9 addresses for pods each: 27, or 29 with host pods. 2 vCPUs reserve 70
		// millicores; 8192 MiB reserve 11 MiB per pod plus 255.
		"addresses": {large(none), Demand{Pods: 54}, Fleet{MaxPods: 29, PodsPerNode: 27, Bound: ByMaxPods, Nodes: 2, MilliCPU: 1930, MemoryMiB: 7618, Addresses: 60}},
		"uneven":    {large(none), Demand{Pods: 28}, Fleet{MaxPods: 29, PodsPerNode: 27, Bound: ByMaxPods, Nodes: 2, MilliCPU: 1930, MemoryMiB: 7618, Addresses: 60, Wasted: 26}},
		"cpu":       {large(none), Demand{Pods: 7, MilliCPU: 250}, Fleet{MaxPods: 29, PodsPerNode: 7, Bound: ByCPU, Nodes: 1, MilliCPU: 1930, MemoryMiB: 7618, Addresses: 20, Wasted: 11}},
		"memory":    {large(none), Demand{Pods: 3, MilliCPU: 1, MemoryMiB: 2048}, Fleet{MaxPods: 29, PodsPerNode: 3, Bound: ByMemory, Nodes: 1, MilliCPU: 1930, MemoryMiB: 7618, Addresses: 20, Wasted: 15}},
		"max-pods over the addresses": {
			large(func(s *whatif.Settings) { s.MaxPods = 110 }), Demand{Pods: 27},
			Fleet{MaxPods: 110, PodsPerNode: 27, Bound: ByAddresses, Nodes: 1, MilliCPU: 1930, MemoryMiB: 6727, Addresses: 30},
		},
		"no room":       {large(none), Demand{Pods: 1, MilliCPU: 2000}, Fleet{MaxPods: 29, Bound: ByCPU, MilliCPU: 1930, MemoryMiB: 7618, Why: "no pod fits: cpu"}},
		"vCPUs unknown": {whatif.Settings{Instance: instance(t, "cr1.8xlarge")}, Demand{Pods: 1}, Fleet{Why: "vCPUs unknown: give --max-pods"}},
	} {
		if d := cmp.Diff(c.want, Place(c.s, c.d)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestPlace_Serves: every placed pod has an address. Neighbours in the table are of the same
// family, so one in eight is enough; all would take seconds.
func TestPlace_Serves(t *testing.T) {
	t.Parallel()
	n := 0
	for name := range limits.Types() {
		if n++; n%8 != 0 {
			continue
		}
		for _, prefixes := range []bool{false, true} {
			s := whatif.Settings{Instance: instance(t, name), WarmENI: 1, WarmPrefix: 1, PrefixDelegation: prefixes}
			f := Place(s, Demand{Pods: 1000})
			if f.Nodes == 0 {
				if f.Why == "" {
					t.Errorf("%s: no figures and no reason", name)
				}
				continue
			}
			s.MaxPods = f.MaxPods
			if f.PodsPerNode*f.Nodes < 1000 || f.PodsPerNode*(f.Nodes-1) >= 1000 {
				t.Errorf("%s: 1000 pods on %d nodes of %d", name, f.Nodes, f.PodsPerNode)
			}
			if h := whatif.Grow(s, f.PodsPerNode, whatif.Upstream); h.Pods != f.PodsPerNode {
				t.Errorf("%s, prefixes %t: %d of %d pods have an address", name, prefixes, h.Pods, f.PodsPerNode)
			}
		}
	}
}

func TestKubeReserved(t *testing.T) {
	t.Parallel()
	for vcpus, want := range map[int]int{0: 0, 1: 60, 2: 70, 4: 80, 8: 90, 96: 310} {
		if got := maxpods.KubeReservedMilliCPU(vcpus); got != want {
			t.Errorf("%d vCPUs: %d, want %d", vcpus, got, want)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	found, unknown := Types(limits.Table{}, []string{"m7g.*large", "m7g.large", "t3.nano"})
	if len(found) < 5 || found[len(found)-1].Type != "t3.nano" || unknown != "" {
		t.Errorf("%d types, %q", len(found), unknown)
	}
	for _, pattern := range []string{"m7g", "z9.*", "[", ""} {
		if found, unknown := Types(limits.Table{}, []string{"m5.large", pattern}); found != nil || unknown != pattern {
			t.Errorf("%q: %d types, %q", pattern, len(found), unknown)
		}
	}
}

func TestReadPrices(t *testing.T) {
	t.Parallel()
	const head = "region,type,hourly_usd,spot_usd\n"
	for name, c := range map[string]struct {
		text, region string
		want         Prices
		err          string
	}{
		"one region":     {head + "r,m5.large,0.1,0.05\nr,t3.nano, 0.01 ,\n", "", Prices{"m5.large": {0.1, 0.05}, "t3.nano": {0.01, 0}}, ""},
		"other order":    {"hourly_usd,region,type\n0.1,r,m5.large\n", "r", Prices{"m5.large": {Hourly: 0.1}}, ""},
		"byte order":     {"\ufeff" + head + "r,m5.large,0.1,\n", "", Prices{"m5.large": {Hourly: 0.1}}, ""},
		"chosen":         {head + "r,m5.large,0.1,\ns,m5.large,0.2,\n", "s", Prices{"m5.large": {Hourly: 0.2}}, ""},
		"empty":          {"", "", nil, "line 1: the file is empty"},
		"no header":      {"r,m5.large,0.1\n", "", nil, `line 1: field 1 is "r"`},
		"header twice":   {"region,type,type,hourly_usd\n", "", nil, `line 1: field 3 is "type"`},
		"header short":   {"region,type\n", "", nil, "line 1: field hourly_usd is missing"},
		"no prices":      {head, "", nil, "there is no price"},
		"several":        {head + "r,m5.large,0.1,\ns,m5.large,0.2,\n", "", nil, "give --region"},
		"unknown region": {head + "r,m5.large,0.1,\n", "s", nil, `no price for "s"`},
		"not a number":   {head + "r,m5.large,0.1,\nr,t3.nano,free,\n", "", nil, `line 3: hourly_usd is "free"`},
		"not finite":     {head + "r,m5.large,NaN,\n", "", nil, `line 2: hourly_usd is "NaN"`},
		"negative spot":  {head + "r,m5.large,1,-1\n", "", nil, `line 2: spot_usd is "-1"`},
		"no type":        {head + "r,,1,\n", "", nil, "line 2: type is empty"},
		"twice":          {head + "r,m5.large,1,\nr,m5.large,1,\n", "", nil, "line 3: type \"m5.large\" of region \"r\" is given twice"},
		"too few":        {head + "r,m5.large\n", "", nil, "line 2"},
	} {
		got, err := ReadPrices(strings.NewReader(c.text), c.region)
		if d := cmp.Diff(c.want, got); d != "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q (-want +got):\n%s", name, err, c.err, d)
		}
	}
}

func FuzzReadPrices(f *testing.F) {
	f.Add("region,type,hourly_usd\nr,m5.large,0.1\n", "r")
	f.Add("\ufeffhourly_usd,\"region\",type,spot_usd\n1,\"a\nb\",c,\n", "")
	f.Fuzz(func(t *testing.T, text, region string) {
		prices, err := ReadPrices(strings.NewReader(text), region)
		if (err == nil) == (len(prices) == 0) {
			t.Fatalf("%d prices, %v", len(prices), err)
		}
		for name, p := range prices {
			if name == "" || !(p.Hourly > 0) || !(p.Spot >= 0) {
				t.Fatalf("%q: %v", name, p)
			}
		}
	})
}
