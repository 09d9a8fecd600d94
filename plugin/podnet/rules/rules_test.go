package rules_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/plugin/podnet/rules"
)

func addr(t *testing.T, s string) netip.Addr {
	t.Helper()
	a, err := netip.ParseAddr(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pair() rules.Pair { return pairNamed(netnames.HostVeth("eni", "default", "web-2", 0), "eth0") }

func pairNamed(host, pod string) rules.Pair {
	p := rules.NewPair("abc003", host, pod, 9001)
	// Fixed values keep the expected text below readable.
	p.Host.Index, p.Host.MAC = 1234567, netstate.MAC{0xf2, 6, 0xfa, 0x51, 0x69, 0x43}
	p.Pod.MAC = netstate.MAC{0x6a, 0x62, 0x76, 0xa9, 0x61, 0xec}
	return p
}

const pairText = `host link add eni9fb0db7f13e index 1234567 address f2:06:fa:51:69:43 mtu 9001 txqueuelen 0 up type veth peer name eth0 index 2 address 6a:62:76:a9:61:ec
host sysctl net.ipv6.conf.eni9fb0db7f13e.accept_ra = 0
host sysctl net.ipv6.conf.eni9fb0db7f13e.accept_redirects = 1
host sysctl net.ipv6.conf.eni9fb0db7f13e.forwarding = 0
`

const podText = `pod link set eth0 up
pod route replace 169.254.1.1 dev eth0 scope link
pod route add default via 169.254.1.1 dev eth0
pod addr add 10.0.0.22/32 dev eth0
pod neigh add 169.254.1.1 dev eth0 lladdr f2:06:fa:51:69:43 nud permanent
host route replace 10.0.0.22 dev eni9fb0db7f13e scope link
host rule del 1536: from 10.0.0.22
host rule add 512: from all to 10.0.0.22 lookup main
`

func TestPod(t *testing.T) {
	t.Parallel()
	for table, more := range map[int]string{
		0:     "", // how older daemons send the main table
		1:     "",
		254:   "",
		2:     "host rule add 1536: from 10.0.0.22 lookup 2\n",
		10102: "host rule add 1536: from 10.0.0.22 lookup 10102\n",
	} {
		p, err := rules.NewPod(rules.Attachment{Pair: pair(), Address: addr(t, "10.0.0.22"), Table: table})
		if err != nil {
			t.Errorf("table %d: %v", table, err)
			continue
		}
		if diff := cmp.Diff(pairText+podText+more, p.String()); diff != "" {
			t.Errorf("table %d (-want +got):\n%s", table, diff)
		}
	}
}

func TestTeardown(t *testing.T) {
	t.Parallel()
	for table, rule := range map[int]string{
		254: "",
		1:   "",
		0:   "host rule del 1536: from 10.0.0.22\n",
		3:   "host rule del 1536: from 10.0.0.22 lookup 3\n",
	} {
		got, err := rules.NewTeardown(addr(t, "::ffff:10.0.0.22"), table)
		if err != nil {
			t.Errorf("table %d: %v", table, err)
			continue
		}
		want := "host rule del 512: from all to 10.0.0.22 lookup main\n" + rule + "host route del 10.0.0.22\n"
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("table %d (-want +got):\n%s", table, diff)
		}
	}
}

func TestTeardown_OtherKinds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		make func() (rules.Teardown, error)
		want string
	}{
		"IPv6": {
			func() (rules.Teardown, error) { return rules.NewTeardown(addr(t, "2001:db8::7"), 2) },
			"host rule del 512: from all to 2001:db8::7 lookup main\n" +
				"host rule del 1536: from 2001:db8::7 lookup 2\n" +
				"host route del 2001:db8::7\n",
		},
		"branch": {
			func() (rules.Teardown, error) { return rules.NewBranchTeardown(addr(t, "10.1.0.90"), 3) },
			"host link del vlan.eth.3\n" +
				"host rule del 512: from all to 10.1.0.90 lookup main\n" +
				"host rule del 10: from all lookup 103\n" +
				"host rule del 1536: from 10.1.0.90 lookup 103\n" +
				"host route del 10.1.0.90\n",
		},
		"IPv6 branch": {
			func() (rules.Teardown, error) { return rules.NewBranchTeardown(addr(t, "2001:db8::7"), 3) },
			"host link del vlan.eth.3\n" +
				"host rule del 512: from all to 2001:db8::7 lookup main\n" +
				"host rule del -6 10: from all lookup 103\n" +
				"host rule del 1536: from 2001:db8::7 lookup 103\n" +
				"host route del 2001:db8::7\n",
		},
	} {
		got, err := row.make()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(row.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		address netip.Addr
		table   int
	}{
		{netip.Addr{}, 254}, {addr(t, "10.0.0.1"), -1},
	} {
		if p, err := rules.NewPod(rules.Attachment{Pair: pair(), Address: row.address, Table: row.table}); err == nil {
			t.Errorf("%v table %d gave %v", row.address, row.table, p)
		}
	}
	for _, row := range []struct {
		address netip.Addr
		table   int
	}{
		{netip.Addr{}, 254}, {addr(t, "10.0.0.1"), -1},
	} {
		if p, err := rules.NewTeardown(row.address, row.table); err == nil {
			t.Errorf("teardown of %v table %d gave %v", row.address, row.table, p)
		}
	}
	// 154 and 155 would yield the tables main and local.
	for _, vlan := range []int{-1, 0, 121, 154, 155} {
		if p, err := rules.NewBranchTeardown(addr(t, "10.0.0.1"), vlan); err == nil {
			t.Errorf("teardown of VLAN %d gave %v", vlan, p)
		}
	}
}

// TestPair_Derived: stable for a sandbox, distinct between sandboxes and ends, a locally
// administered unicast MAC, and an index in the range that the kernel does not use.
func TestPair_Derived(t *testing.T) {
	t.Parallel()
	seen := map[netstate.MAC]string{}
	indexes := map[int32]int{}
	for i := range 2000 {
		id := fmt.Sprintf("sandbox%d", i)
		p := rules.NewPair(id, "eni1", "eth0", 1500)
		if diff := cmp.Diff(p, rules.NewPair(id, "eni1", "eth0", 1500)); diff != "" {
			t.Fatalf("not stable: %s", diff)
		}
		for _, m := range []netstate.MAC{p.Host.MAC, p.Pod.MAC} {
			if m[0]&3 != 2 {
				t.Fatalf("%v is not a local unicast address", m)
			}
			if other, ok := seen[m]; ok {
				t.Fatalf("%v is used by %s and %s", m, other, id)
			}
			seen[m] = id
		}
		if p.Host.Index < 1<<20 || p.Host.Index >= 1<<24 {
			t.Fatalf("index %d", p.Host.Index)
		}
		indexes[p.Host.Index]++
	}
	if len(indexes) < 1990 {
		t.Errorf("only %d of 2000 indexes differ", len(indexes))
	}
	if rules.NewPair("a", "eni1", "eth0", 1500).Host.MAC == rules.NewPair("a", "eni1", "mNicIf1", 1500).Host.MAC {
		t.Error("two interfaces of a pod share a MAC")
	}
}

func TestNextHostIndex(t *testing.T) {
	t.Parallel()
	for from, want := range map[int32]int32{1 << 20: 1<<20 + 1, 1<<24 - 1: 1 << 20} {
		if got := rules.NextHostIndex(from); got != want {
			t.Errorf("NextHostIndex(%d) = %d, want %d", from, got, want)
		}
	}
}
