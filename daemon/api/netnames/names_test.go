package netnames_test

import (
	"testing"

	"cnictl/daemon/api/netnames"
)

func TestHash(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ns, name string
		index    int
		want     string
	}{
		{"default", "nginx", 0, "c440f455693"},
		{"kube-system", "web-2", 0, "ca82d32c244"},
		{"kube-system", "web-2", 1, "7cd2485543c"},
		{"default", "web-0", 0, "0d7763386da"}, // from a recorded result
		{"default", "web-1", 0, "0761ccbeace"},
		{"default", "web-2", 0, "9fb0db7f13e"},
	} {
		if got := netnames.Hash(row.ns, row.name, row.index); got != row.want {
			t.Errorf("Hash(%q, %q, %d) = %s, want %s", row.ns, row.name, row.index, got, row.want)
		}
	}
}

func TestLinkNames(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		netnames.HostVeth(netnames.DefaultVethPrefix, "default", "nginx", 0): "enic440f455693",
		netnames.HostVeth(netnames.BranchVethPrefix, "default", "nginx", 0):  "vlanc440f455693",
		netnames.HostVeth("", "default", "nginx", 0):                         "c440f455693",
		netnames.PodInterface("eth0", 0):                                     "eth0",
		netnames.PodInterface("eth0", 2):                                     "mNicIf2",
		netnames.Dummy("default", "web-0"):                                   "dummy0d7763386da",
		netnames.VLANDevice(7):                                               "vlan.eth.7",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if n := len(netnames.HostVeth("abcd", "default", "nginx", 0)); n > 15 {
		t.Errorf("a host link name has %d characters, the kernel allows 15", n)
	}
}

func TestRouteTables(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ card, device, want int }{
		{0, 0, 254}, {0, 1, 2}, {0, 2, 3}, {0, 14, 15}, {1, 0, 10100}, {1, 2, 10102}, {3, 1, 10301},
	} {
		if got := netnames.RouteTable(row.card, row.device); got != row.want {
			t.Errorf("RouteTable(%d, %d) = %d, want %d", row.card, row.device, got, row.want)
		}
	}
	if got := netnames.LegacyRouteTable(2, 1, 4); got != 10 {
		t.Errorf("LegacyRouteTable(2, 1, 4) = %d", got)
	}
	for vlan, want := range map[int]int{1: 101, 3: 103, 120: 220, 0: 0, -1: 0, 121: 0, 154: 0, 155: 0, 4094: 0} {
		if got, ok := netnames.BranchTable(vlan); got != want || ok != (want > 0) {
			t.Errorf("BranchTable(%d) = %d, %t", vlan, got, ok)
		}
	}
	for table, want := range map[int]bool{254: true, 1: true, 0: false, 2: false, 10102: false} {
		if netnames.IsMain(table) != want {
			t.Errorf("IsMain(%d) = %t", table, !want)
		}
	}
}

func TestVLANOfDevice(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"vlan.eth.1": 1, "vlan.eth.120": 120,
		"vlan.eth.0": 0, "vlan.eth.121": 0, "vlan.eth.154": 0, "vlan.eth.4094": 0, "vlan.eth.": 0, "vlan.eth.01": 0, "vlan.eth.+1": 0, "vlan.eth.1x": 0,
		"vlan0d7763386da": 0, "eth0": 0, "": 0,
	} {
		if got, ok := netnames.VLANOfDevice(name); got != want || ok != (want > 0) {
			t.Errorf("VLANOfDevice(%q) = %d, %t", name, got, ok)
		}
	}
}

func TestGateways(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		netnames.GatewayIPv4(0).String():      "169.254.1.1",
		netnames.GatewayIPv4(3).String():      "169.254.1.4",
		netnames.GatewayIPv6(0).String():      "fe80::1",
		netnames.GatewayIPv6(1).String():      "fe80::2",
		netnames.BranchGatewayIPv6().String(): "fe80:ec2::1",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkHostVeth(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		netnames.HostVeth("eni", "kube-system", "coredns-5d78c9869d-abcde", 0)
	}
}
