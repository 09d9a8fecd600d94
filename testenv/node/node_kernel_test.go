package node_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// boot starts an instance of a world of its own as a node.
func boot(t *testing.T) *node.Node {
	t.Helper()
	testenv.RequireKernel(t, "veth", "nft")
	w := fakeaws.NewWorld(fakeaws.Options{})
	t.Cleanup(w.Close)
	s, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: w.AddVPC(netip.MustParsePrefix("10.1.0.0/16")).ID, CIDR: netip.MustParsePrefix("10.1.0.0/20")})
	if err != nil {
		t.Fatal(err)
	}
	i, err := w.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: s.ID})
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := vpc.NewFabric(vpc.Options{World: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	n, err := node.Start(t.Context(), node.Options{Fabric: fabric, World: w, InstanceID: i.ID, Dir: t.TempDir(), Binaries: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestLeftovers_FindsWhatIsLeft: tests of plugins and daemons rely on it.
func TestLeftovers_FindsWhatIsLeft(t *testing.T) {
	t.Parallel()
	n := boot(t)
	if err := n.NS.Do(func() error {
		r := netlink.NewRule()
		r.Priority, r.Dst, r.Table = 512, &net.IPNet{IP: net.IPv4(10, 1, 0, 5).To4(), Mask: net.CIDRMask(32, 32)}, 254
		return netlink.RuleAdd(r)
	}); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // it looks once
	left, err := n.Leftovers(over)
	if err != nil || !slices.Equal(left, []string{"rule 512: from <nil> to 10.1.0.5/32 lookup 254"}) {
		t.Errorf("leftovers: %q, error %v", left, err)
	}
}
