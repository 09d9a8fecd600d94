package rules_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/plugin/podnet/rules"
)

func TestPod_IPv6(t *testing.T) {
	t.Parallel()
	p, err := rules.NewPod(rules.Attachment{Pair: pair(), Address: addr(t, "2001:db8::22"), Table: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := pairText + `host sysctl net.ipv6.conf.eni9fb0db7f13e.accept_dad = 0
pod sysctl net.ipv6.conf.eth0.accept_dad = 0
pod sysctl net.ipv6.conf.eth0.disable_ipv6 = 0
pod sysctl net.ipv6.conf.lo.disable_ipv6 = 0
host addr add fe80::f006:faff:fe51:6943/64 dev eni9fb0db7f13e scope link nodad
pod link set eth0 up
pod route replace fe80::1 dev eth0
pod route add default via fe80::1 dev eth0
pod addr add 2001:db8::22/128 dev eth0 nodad
pod neigh add fe80::1 dev eth0 lladdr f2:06:fa:51:69:43 nud permanent
host route replace 2001:db8::22 dev eni9fb0db7f13e
host rule del 1536: from 2001:db8::22
host rule add 512: from all to 2001:db8::22 lookup main
host rule add 1536: from 2001:db8::22 lookup 2
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPod_SeveralInterfaces(t *testing.T) {
	t.Parallel()
	second := pairNamed("eni7cd2485543c", "mNicIf1").Further(1)
	for _, row := range []struct {
		first, second, scope, inPod string
	}{
		{"10.0.0.22", "10.2.0.7", " scope link", `pod link set mNicIf1 up
pod route replace 169.254.1.2 dev mNicIf1 table 1 scope link
pod rule add 1: from 10.2.0.7 lookup 1
pod route add default via 169.254.1.2 dev mNicIf1 table 1
pod addr add 10.2.0.7/32 dev mNicIf1
pod neigh add 169.254.1.2 dev mNicIf1 lladdr f2:06:fa:51:69:43 nud permanent
`},
		{"2001:db8::22", "2001:db8:2::7", "", `pod link set mNicIf1 up
pod route replace fe80::2 dev mNicIf1 table 1
pod rule add 1: from 2001:db8:2::7 lookup 1
pod route add default via fe80::2 dev mNicIf1 table 1
pod addr add 2001:db8:2::7/128 dev mNicIf1 nodad
pod neigh add fe80::2 dev mNicIf1 lladdr f2:06:fa:51:69:43 nud permanent
`},
	} {
		p, err := rules.NewPod(rules.Attachment{Pair: pair(), Address: addr(t, row.first), Table: 254},
			rules.Attachment{Pair: second, Address: addr(t, row.second), Table: 10102})
		if err != nil {
			t.Fatal(err)
		}
		host := "host route replace " + row.second + " dev eni7cd2485543c" + row.scope + `
host rule del 1536: from ` + row.second + `
host rule add 512: from all to ` + row.second + ` lookup main
host rule add 1536: from ` + row.second + ` lookup 10102
`
		for _, part := range []string{row.inPod, host, "peer name mNicIf1 index 3 "} {
			if !strings.Contains(p.String(), part) {
				t.Errorf("without\n%s:\n%s", part, p)
			}
		}
		// The first interface is the same as if it were the only one.
		alone, err := rules.NewPod(rules.Attachment{Pair: pair(), Address: addr(t, row.first), Table: 254})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone.Interfaces[0].Gateway, p.Interfaces[0].Gateway, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
			cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
	}
}

// branchC is a pod with a branch ENI.
func branchC(t *testing.T, address, gateway string, strict bool) rules.Pod {
	t.Helper()
	prefix := netnames.DefaultVethPrefix
	if strict {
		prefix = netnames.BranchVethPrefix
	}
	pr := rules.NewPair("c", netnames.HostVeth(prefix, "default", "c", 0), "eth0", 9001)
	p, err := rules.NewBranchPod(pr, addr(t, address), rules.BranchENI{
		VLAN: 3, MAC: netstate.MAC{2, 0, 0, 0, 0, 3}, Gateway: addr(t, gateway), Trunk: 7, Strict: strict,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBranchPod_WorkedExample: the rules and routes of pod C in the example, in both modes.
func TestBranchPod_WorkedExample(t *testing.T) {
	t.Parallel()
	hash := netnames.Hash("default", "c", 0)
	vlan := func(link string) string {
		return `host rule del 10: from all iif ` + link + `
host rule del 10: from all lookup 103
host link del vlan.eth.3
host link add link 7 name vlan.eth.3 address 02:00:00:00:00:03 type vlan id 3
host sysctl net.ipv6.conf.vlan.eth.3.accept_ra = 0
host sysctl net.ipv6.conf.vlan.eth.3.accept_redirects = 1
host sysctl net.ipv6.conf.vlan.eth.3.forwarding = 0
host link set vlan.eth.3 up
host route replace 10.1.0.1 dev vlan.eth.3 table 103 scope link
host route replace default via 10.1.0.1 dev vlan.eth.3 table 103
`
	}
	for _, row := range []struct {
		strict      bool
		vlan, rules string
	}{
		{true, vlan("vlan" + hash), `host route replace 10.1.0.90 dev vlan` + hash + ` table 103 scope link
host rule del 1536: from 10.1.0.90
host rule add 10: from all iif vlan.eth.3 lookup 103
host rule add 10: from all iif vlan` + hash + ` lookup 103
`},
		{false, vlan("eni" + hash), `host route replace 10.1.0.90 dev eni` + hash + ` scope link
host rule del 1536: from 10.1.0.90
host rule add 512: from all to 10.1.0.90 lookup main
host rule add 1536: from 10.1.0.90 lookup 103
`},
	} {
		text := branchC(t, "10.1.0.90", "10.1.0.1", row.strict).String()
		if !strings.Contains(text, row.vlan) || !strings.HasSuffix(text, row.rules) {
			t.Errorf("strict=%t: got\n%s\nwant\n%s...\n%s", row.strict, text, row.vlan, row.rules)
		}
	}
}

func TestBranchPod_IPv6(t *testing.T) {
	t.Parallel()
	hash := netnames.Hash("default", "c", 0)
	text := branchC(t, "2001:db8::90", "fe80:ec2::1", true).String()
	for _, part := range []string{
		"host rule del -6 10: from all iif vlan" + hash + "\nhost rule del -6 10: from all lookup 103\n",
		"host sysctl net.ipv6.conf.vlan.eth.3.accept_dad = 0\n",
		"host addr add fe80::ff:fe00:3/64 dev vlan.eth.3 scope link nodad\n",
		"host route replace fe80:ec2::1 dev vlan.eth.3 table 103\nhost route replace default via fe80:ec2::1 dev vlan.eth.3 table 103\n",
		"host route replace 2001:db8::90 dev vlan" + hash + " table 103\n",
		"host rule add -6 10: from all iif vlan.eth.3 lookup 103\nhost rule add -6 10: from all iif vlan" + hash + " lookup 103\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("without %q:\n%s", part, text)
		}
	}
}

func TestBranchPod_Refused(t *testing.T) {
	t.Parallel()
	good := rules.BranchENI{VLAN: 3, Gateway: addr(t, "10.1.0.1"), Trunk: 7}
	for name, row := range map[string]struct {
		address string
		change  func(*rules.BranchENI)
	}{
		"VLAN 0":   {"10.1.0.90", func(e *rules.BranchENI) { e.VLAN = 0 }},
		"VLAN 121": {"10.1.0.90", func(e *rules.BranchENI) { e.VLAN = 121 }},
		"main":     {"10.1.0.90", func(e *rules.BranchENI) { e.VLAN = 154 }},
		"gateway":  {"10.1.0.90", func(e *rules.BranchENI) { e.Gateway = netip.Addr{} }},
		"family":   {"2001:db8::90", func(*rules.BranchENI) {}},
	} {
		eni := good
		row.change(&eni)
		if p, err := rules.NewBranchPod(pair(), addr(t, row.address), eni); err == nil {
			t.Errorf("%s gave %v", name, p)
		}
	}
	if p, err := rules.NewPod(); err == nil {
		t.Errorf("no attachment gave %v", p)
	}
	if p, err := rules.NewPod(make([]rules.Attachment, 255)...); err == nil {
		t.Errorf("255 attachments gave %v", p)
	}
}

// TestTeardown_RemovesWhatIsAdded: for any kind of pod, its own teardown or that of the other
// mode deletes every rule that setup adds.
func TestTeardown_RemovesWhatIsAdded(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"10.1.0.90", "2001:db8::90"} {
		for vlan := range netnames.MaxVLAN + 1 {
			for _, strict := range []bool{true, false} {
				own := addr(t, address)
				gateway := netnames.BranchGatewayIPv6()
				if own.Is4() {
					gateway = addr(t, "10.1.0.1")
				}
				p, err := rules.NewPod(rules.Attachment{Pair: pair(), Address: own, Table: vlan + 2})
				td, tdErr := rules.NewTeardown(own, vlan+2)
				if vlan > 0 {
					p, err = rules.NewBranchPod(pair(), own, rules.BranchENI{VLAN: vlan, Gateway: gateway, Trunk: 1, Strict: strict})
					td, tdErr = rules.NewBranchTeardown(own, vlan)
				}
				if err != nil || tdErr != nil {
					t.Fatal(err, tdErr)
				}
				for _, r := range p.Interfaces[0].Rules {
					if !deleted(td, r) {
						t.Errorf("VLAN %d, strict %t: %q stays after\n%s", vlan, strict, r, td)
					}
				}
				if p.VLAN != nil && p.VLAN.Name != td.VLANLink {
					t.Errorf("%s stays", p.VLAN.Name)
				}
			}
		}
	}
}

// deleted reports whether td deletes r. The kernel matches only the fields given.
func deleted(td rules.Teardown, r netstate.Rule) bool {
	for _, d := range append(td.All, td.ToPod) {
		if d.Priority == r.Priority && (d.Table == 0 || d.Table == r.Table) && (!d.From.IsValid() || d.From == r.From) &&
			(!d.To.IsValid() || d.To == r.To) && (d.From.IsValid() || d.To.IsValid() || d.IPv6 == r.IPv6) {
			return true
		}
	}
	return false
}

func TestParseMAC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"02:00:0a:FF:00:03": true, "": false, "02:00:00:00:00": false, "02-00-00-00-00-03": false, "02:00:00:00:00:0g": false, "02:00:00:00:00:+3": false,
		"02:00:00:00:00:03:04": false, "2::00:00:00:00:03": false,
	} {
		m, ok := netstate.ParseMAC(text)
		if ok != want || ok && !strings.EqualFold(m.String(), text) {
			t.Errorf("%q: %v, %t", text, m, ok)
		}
	}
	if m, ok := netstate.ParseMAC(fmt.Sprint(netstate.MAC{2, 3, 4, 5, 6, 7})); !ok || m != (netstate.MAC{2, 3, 4, 5, 6, 7}) {
		t.Error(m, ok)
	}
}
