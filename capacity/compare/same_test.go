package compare

import (
	"testing"

	"cnictl/capacity/capacitytest"
	"cnictl/capacity/maxpods"
	"cnictl/capacity/whatif"
)

func settings(n capacitytest.Node) whatif.Settings {
	return whatif.Settings{
		Instance: n.Instance, MaxENI: n.MaxENI, PrefixDelegation: n.Input.PrefixDelegation, CustomNetworking: n.CustomNetworking, Trunk: n.Trunk(),
		Existing: whatif.Existing{
			UnmanagedENIs: n.UnmanagedENIs, ExcludedENIs: n.ExcludedENIs, PrimaryExcluded: n.PrimaryExcluded,
			StatedENIs: n.StatedENIs, StatedSlots: n.StatedSlots,
		},
	}
}

// TestSameCapacity: max-pods, what-if and compare give the same number of addresses for every type
// with every setting, and the planners fill the pool to just that. So does the daemon
// (daemon/ipamd), what is shown of a node (daemon/fleet) and the doctor (doctor/causes).
func TestSameCapacity(t *testing.T) {
	t.Parallel()
	type shape struct { // of what the planners see
		enis, ipv4, others, statedENIs, statedSlots, maxENI int
		trunk, custom, excluded, prefixes                   bool
	}
	grown, nodes, types := map[shape]int{}, 0, map[string]bool{}
	for n := range capacitytest.Nodes {
		nodes++
		types[n.Type] = true
		s, want := settings(n), maxpods.Compute(n.Input).PodIPs
		if got := s.Capacity(); got != want {
			t.Fatalf("%s: what-if %d, max-pods %d", n, got, want)
		}
		s.MaxPods = 1 << 20
		if f := Place(s, Demand{}); f.PodsPerNode != want || f.Bound != ByAddresses {
			t.Fatalf("%s: compare %+v, max-pods %d", n, f, want)
		}
		key := shape{
			n.MaxENIs, n.IPv4PerENI, n.UnmanagedENIs + n.ExcludedENIs, n.StatedENIs, n.StatedSlots, n.MaxENI,
			n.Trunk(), n.CustomNetworking, n.PrimaryExcluded, n.Prefixes(),
		}
		if _, done := grown[key]; done {
			continue
		}
		s.MaxPods, s.WarmIP = 0, 1<<20 // more than any pool can hold
		for _, m := range []whatif.Model{whatif.Ours, whatif.Upstream} {
			if got := whatif.Grow(s, 0, m).Addresses; got != want {
				t.Fatalf("%s: the pool of %s grows to %d, max-pods %d", n, m.Name, got, want)
			}
		}
		grown[key] = want
	}
	t.Logf("%d nodes, %d shapes", nodes, len(grown))
	if len(types) < 1442 || nodes < 200_000 || len(grown) < 2000 {
		t.Errorf("%d nodes of %d types in %d shapes", nodes, len(types), len(grown))
	}
}
