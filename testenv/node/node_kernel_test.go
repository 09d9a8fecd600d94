package node_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
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

func TestStart_BootsAsAnInstance(t *testing.T) {
	t.Parallel()
	n := boot(t)
	if n.Link != "ens5" || n.Primary.PrimaryIP != netip.MustParseAddr("10.1.0.4") {
		t.Errorf("primary link %s, address %s", n.Link, n.Primary.PrimaryIP)
	}
	saw, err := n.NS.AskEcho(t.Context(), "tcp", netip.Addr{}, vpc.Outside, testenv.Left(t))
	if err != nil || saw.Addr() != n.Primary.PrimaryIP {
		t.Errorf("outside saw %v, error %v", saw, err)
	}
	if err := n.NS.Do(func() error {
		for file, want := range map[string]string{"ip_forward": "1", "conf/ens5/rp_filter": "2", "conf/all/rp_filter": "0"} {
			got, err := os.ReadFile("/proc/sys/net/ipv4/" + file)
			if err != nil {
				return err
			}
			if strings.TrimSpace(string(got)) != want {
				return fmt.Errorf("%s = %q, want %s", file, got, want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	left, err := n.Leftovers(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("leftovers of a fresh node: %v, error %v", left, err)
	}
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
