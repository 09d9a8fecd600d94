package hostnet

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/rules"
)

func ipv6ENI(in *rules.ENIInput) {
	in.IPv6, in.PrimaryIP, in.Subnet = true, netip.MustParseAddr("fd00:10::14"), netip.MustParsePrefix("fd00:10::/64")
}

func trunk(in *rules.ENIInput) { in.Trunk = true }

// eniState6 prints what SetupENI configures in an IPv6 cluster, for a link.
func (n *bed) eniState6(name string) string {
	return n.sh("ip -6 -br addr show dev " + name + " scope global; ip -6 route show table all dev " + name +
		" | grep -v '^local\\|^fe80::\\|^multicast\\|^ff00\\|^anycast' | sed 's/ pref medium//; s/ linkdown//' || true; ip -6 rule | grep -v 'from all' || true; ip link show " + name + " | grep -o 'mtu [0-9]*'")
}

const wantENI6 = `ens6@far0        UP             fd00:10::14/64 
fe80:ec2::1 table 2 metric 1024
default via fe80:ec2::1 table 2 metric 1024
32765:	from fd00:10::14 lookup 2
mtu 9001
`

func TestSetupENI_IPv6(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI(ipv6ENI)
	if d := cmp.Diff(wantENI6, n.eniState6("ens6")); d != "" {
		t.Errorf("(-want +kernel):\n%s", d)
	}
	if a := n.sh("ip -6 addr show dev ens6 scope global"); !strings.Contains(a, "nodad") || strings.Contains(a, "tentative") {
		t.Errorf("address is checked for duplicates:\n%s", a)
	}
	if got := n.sh("ip -4 addr show dev ens6; ip -4 rule | grep 32765 || true"); got != "" {
		t.Errorf("IPv4:\n%s", got)
	}
	before := n.everything() + n.eniState6("ens6")
	n.setupENI(ipv6ENI)
	if d := cmp.Diff(before, n.everything()+n.eniState6("ens6")); d != "" {
		t.Errorf("a second time (-before +after):\n%s", d)
	}
}

func TestSetupENI_IPv6Repairs(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI(ipv6ENI)
	for _, damage := range []string{
		"ip link set ens6 down",
		"ip link set ens6 mtu 1500",
		"ip -6 addr flush dev ens6 scope global",
		"ip addr add fd00:10::77/64 dev ens6 nodad; ip addr add fd00:99::1/80 dev ens6 nodad",
		"ip addr del fd00:10::14/64 dev ens6; ip addr add fd00:10::14/128 dev ens6 nodad", // as DHCPv6 gives it
		"ip -6 route flush table 2",
		"ip -6 route replace default via fe80::9 dev ens6 table 2",
		"ip -6 route del default table 2; ip -6 route add default dev ens6 table 2",
		"ip -6 route add default via fe80::9 dev ens6 table 2 metric 10",
		"ip -6 route add fd00:10::/64 dev ens6",
		"ip -6 rule del priority 32765",
	} {
		n.sh(damage)
		n.setupENI(ipv6ENI)
		if d := cmp.Diff(wantENI6, n.eniState6("ens6")); d != "" {
			t.Errorf("after %q (-want +kernel):\n%s", damage, d)
		}
	}
}

// The link keeps its link-local address: the router is reached through it.
func TestSetupENI_IPv6LeavesLinkLocal(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.sh("ip link set ens6 up; ip addr add fe80::77/64 dev ens6 nodad; ip addr add fd00:10::77/64 dev ens6 nodad")
	n.setupENI(ipv6ENI)
	if got := n.sh("ip -6 addr show dev ens6"); !strings.Contains(got, "fe80::77/64") || strings.Contains(got, "fd00:10::77") {
		t.Errorf("addresses:\n%s", got)
	}
}

// An IPv6 cluster leaves the link's IPv4 addresses alone.
func TestSetupENI_IPv6LeavesIPv4(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.sh("ip addr add 10.0.0.20/18 dev ens6")
	n.setupENI(ipv6ENI)
	if got := n.sh("ip -4 -br addr show dev ens6"); !strings.Contains(got, "10.0.0.20/18") {
		t.Errorf("%s", got)
	}
}

func TestSetupENI_IPv6Trunk(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	without := func(in *rules.ENIInput) { in.PrimaryIP, in.Subnet = netip.Addr{}, netip.Prefix{} }
	const routes = "fe80:ec2::1 table 2 metric 1024\ndefault via fe80:ec2::1 table 2 metric 1024\nmtu 9001\n"
	for range 2 {
		n.setupENI(ipv6ENI, trunk, without)
		if d := cmp.Diff(routes, n.eniState6("ens6")); d != "" {
			t.Errorf("without an address (-want +kernel):\n%s", d)
		}
	}
	n.setupENI(ipv6ENI, trunk) // now it has one
	if d := cmp.Diff("ens6@far0        UP             fd00:10::14/64 \n"+routes, n.eniState6("ens6")); d != "" {
		t.Errorf("with an address (-want +kernel):\n%s", d)
	}
	n.do(func() error { return n.host.TeardownENI(t.Context(), netip.Addr{}) })
}

func TestSetupENI_IPv6FurtherCard(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	card := func(in *rules.ENIInput) { in.Card, in.Device = 1, 1 }
	n.setupENI(ipv6ENI, card)
	if d := cmp.Diff(strings.NewReplacer("table 2", "table 10101", "lookup 2", "lookup 10101").Replace(wantENI6), n.eniState6("ens6")); d != "" {
		t.Errorf("(-want +kernel):\n%s", d)
	}
	// An AMI's rule wins, and stays the only one.
	n.sh("ip -6 rule del priority 32765; ip -6 rule add priority 30000 from fd00:10::14 lookup 77")
	n.setupENI(ipv6ENI, card, func(in *rules.ENIInput) { in.RouteTable = 77 })
	if got := n.sh("ip -6 rule | grep fd00:10::14"); got != "30000:\tfrom fd00:10::14 lookup 77\n" {
		t.Errorf("rules:\n%s", got)
	}
}

// Rules of removed ENIs are removed only in the family whose addresses the daemon knows; the
// other family belongs to the AMI.
func TestDropENIRules_PerFamily(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("ip rule add priority 32765 from 10.0.0.66 lookup 3; ip -6 rule add priority 32765 from fd00:10::66 lookup 3; ip -6 rule add priority 32765 from fd00:10::14 lookup 2")
	drop := func(attached ...string) (gone []netip.Addr) {
		var list []netip.Addr
		for _, a := range attached {
			list = append(list, netip.MustParseAddr(a))
		}
		n.do(func() (err error) {
			gone, err = n.host.DropENIRules(t.Context(), append(list, netip.Addr{})) // a trunk's
			return err
		})
		return gone
	}
	if gone := drop(); gone != nil {
		t.Errorf("with nothing attached: %v", gone)
	}
	if gone := drop("fd00:10::14"); len(gone) != 1 || gone[0].String() != "fd00:10::66" {
		t.Errorf("IPv6: %v", gone)
	}
	if got := n.sh("ip rule | grep 32765; ip -6 rule | grep 32765"); got != "32765:\tfrom 10.0.0.66 lookup 3\n32765:\tfrom fd00:10::14 lookup 2\n" {
		t.Errorf("left:\n%s", got)
	}
	if gone := drop("10.0.0.10"); len(gone) != 1 || gone[0].String() != "10.0.0.66" {
		t.Errorf("IPv4: %v", gone)
	}
	n.do(func() error { return n.host.TeardownENI(t.Context(), netip.MustParseAddr("fd00:10::14")) })
	if got := n.sh("ip -6 rule"); strings.Contains(got, "fd00") {
		t.Errorf("after the teardown:\n%s", got)
	}
}
