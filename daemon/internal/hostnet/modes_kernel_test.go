package hostnet

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const guard = `-A FORWARD -d 169.254.172.0/22 -m conntrack --ctstate NEW -m comment --comment "Block Node Local Pod access via IPv4" -j REJECT --reject-with icmp-port-unreachable`

// A node of an IPv6 cluster as the AMI leaves it, with IPv6 switched off.
func TestSetupNode_IPv6(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		n.sh("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_ra")
		n.setup(ipv6)
		n.same(ipv6)
		n.quiet(ipv6)
		if got := n.saved(); strings.Contains(got, "AWS") || strings.Count(got, guard+"\n") != 1 {
			t.Errorf("rules:\n%s", got)
		}
		const want = "2\n0\n2\n1\n"
		if got := n.sh("cd /proc/sys/net; cat ipv4/conf/eth0/rp_filter ipv6/conf/all/disable_ipv6 ipv6/conf/eth0/accept_ra ipv6/conf/all/forwarding"); got != want {
			t.Errorf("settings %q, want %q", got, want)
		}
		if d := cmp.Diff("0:\tfrom all lookup local\n1024:\tfrom all fwmark 0x80/0x80 lookup main\n32766:\tfrom all lookup main\n", n.sh("ip -6 rule")); d != "" {
			t.Errorf("ip -6 rule (-want +kernel):\n%s", d)
		}
	})
}

// Others' rules in the chain come after the guard, and stay.
func TestSetupNode_GuardComesFirst(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		const other = `-A FORWARD -m comment --comment "kubernetes forwarding rules" -j ACCEPT`
		n.load("*filter\n" + other + "\nCOMMIT")
		n.setup(ipv6)
		if got := n.saved(); !strings.Contains(got, guard+"\n"+other+"\n") {
			t.Errorf("rules:\n%s", got)
		}
		n.sh(n.tool + " -I FORWARD -d 10.9.9.9 -j ACCEPT")
		n.quiet(ipv6) // a rule before the guard is intentional
		n.sh("ip link add veth0a1b2c3d type veth peer name far; ip link set veth0a1b2c3d up; ip route add 169.254.172.7 dev veth0a1b2c3d")
		n.setup() // a pod of the IPv6 cluster is still there
		if got := n.saved(); strings.Count(got, guard+"\n") != 1 {
			t.Errorf("on an IPv4 node with a living pod:\n%s", got)
		}
		n.quiet()
		n.sh("ip link del veth0a1b2c3d")
		n.setup()
		if got := n.saved(); strings.Contains(got, guard) || !strings.Contains(got, other+"\n") {
			t.Errorf("on an IPv4 node:\n%s", got)
		}
		n.quiet()
	})
}

// An IPv6 node needs nothing in the tables for SNAT and marks, so failing to read them is no
// error.
func TestSetupNode_IPv6BesideForeignTable(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh(`nft 'add table ip nat; add set ip nat s { type ipv4_addr; flags timeout; }; add chain ip nat PREROUTING { type nat hook prerouting priority -100; }; add rule ip nat PREROUTING ip saddr @s numgen random mod 2 0 accept'`)
	n.setup(ipv6)
	n.quiet(ipv6)
}

// Branch pods of strict mode that outlive a change of the mode keep what their rules need.
// The last one's link takes it along.
func TestSetupNode_StrictPodsOutliveTheMode(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.setup(strict)
	n.sh("ip link add vlan0d7763386da type veth peer name podeth0; ip rule add priority 10 iif vlan0d7763386da lookup 103")
	n.setup()
	if d := cmp.Diff([]string{"20: from all lookup local", "1024: from all fwmark 0x80/0x80 lookup main"}, n.nodeRules("ip rule")); d != "" {
		t.Errorf("with a living pod (-want +kernel):\n%s", d)
	}
	n.quiet()
	n.sh("ip link del vlan0d7763386da") // its rule is left, without effect
	n.setup()
	if d := cmp.Diff([]string{"0: from all lookup local", "1024: from all fwmark 0x80/0x80 lookup main"}, n.nodeRules("ip rule")); d != "" {
		t.Errorf("without (-want +kernel):\n%s", d)
	}
	n.quiet()
}

// If another agent moved the rule of the local table, it stays there.
func TestSetupNode_LocalRuleOfOthers(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("ip rule add priority 100 lookup local; ip rule del priority 0")
	n.setup()
	if got := n.sh("ip rule"); !strings.HasPrefix(got, "100:\tfrom all lookup local\n1024:") {
		t.Errorf("rules:\n%s", got)
	}
}

func TestSetupNode_IPv6Errors(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("nft 'add table ip filter; add set ip filter s { type ipv4_addr; flags timeout; }; add chain ip filter FORWARD { type filter hook forward priority 0; }; add rule ip filter FORWARD ip saddr @s numgen random mod 2 0 accept'")
	err := n.ns.Do(func() error { return n.host.SetupNode(t.Context(), input(ipv6)) })
	if err == nil || !strings.HasPrefix(err.Error(), "failed to enable IPv6: host network setup: failed to create iptables: table filter holds rules written by nft") {
		t.Errorf("%v", err)
	}
}

func TestLinkIndex(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.sh("ip link add link eth0 name above address " + eniMAC + " type macvlan") // not the device itself
	n.do(func() error {
		index, err := n.host.LinkIndex(t.Context(), strings.ToUpper(eniMAC))
		if got, _, _ := strings.Cut(n.sh("ip -o link show ens6"), ":"); err == nil && got != strconv.Itoa(index) {
			t.Errorf("index %d, want %s", index, got)
		}
		return err
	})
	for mac, want := range map[string]string{
		"02:00:00:00:00:99": "find link with MAC address 02:00:00:00:00:99: no link of this node has it",
		"":                  `MAC address "" is not six bytes with colons`,
		"00:00:00:00:00:00": "find link with MAC address 00:00:00:00:00:00: no link of this node has it", // lo's address
	} {
		err := n.ns.Do(func() error { _, err := n.host.LinkIndex(t.Context(), mac); return err })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", mac, err)
		}
	}
}

func TestTableFor(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("ip rule add priority 30000 from 10.0.0.20 lookup 77; ip -6 rule add priority 32765 from fd00:10::14 lookup 10177; ip rule add priority 30000 not from 10.0.0.30 lookup 78")
	for _, row := range []struct {
		card, device int
		primary      string
		want         int
	}{
		{1, 1, "10.0.0.20", 77}, {0, 1, "10.0.0.20", 2}, {1, 1, "10.0.0.30", 10101}, {1, 1, "fd00:10::14", 10177}, {2, 1, "fd00:10::15", 10201},
	} {
		n.do(func() error {
			got, err := n.host.TableFor(t.Context(), row.card, row.device, netip.MustParseAddr(row.primary), 4)
			if got != row.want {
				t.Errorf("TableFor(%d, %d, %s) = %d, want %d", row.card, row.device, row.primary, got, row.want)
			}
			return err
		})
	}
}
