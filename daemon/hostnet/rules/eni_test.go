package rules_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
)

func secondENI(change ...func(*rules.ENIInput)) rules.ENIInput {
	in := rules.ENIInput{
		MAC:       "02:fa:4e:00:00:03",
		Device:    1,
		PrimaryIP: netip.MustParseAddr("10.0.0.20"),
		Subnet:    netip.MustParsePrefix("10.0.0.0/18"),
		MTU:       9001,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func ipv6ENI(in *rules.ENIInput) {
	in.IPv6, in.PrimaryIP, in.Subnet = true, netip.MustParseAddr("fd00:10::14"), netip.MustParsePrefix("fd00:10::/64")
}

func TestENI(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*rules.ENIInput)
		want   string
	}{
		// Texts as recorded, without link names.
		{"second ENI", func(*rules.ENIInput) {}, `link up mtu 9001
address 10.0.0.20/18
route 10.0.0.1 table 2 scope link
route default via 10.0.0.1 table 2
not route 10.0.0.0/18 scope link src 10.0.0.20
rule 32765: from 10.0.0.20 lookup 2
`},
		{"trunk", func(in *rules.ENIInput) { in.Trunk, in.MTU = true, 0 }, `link up
address 10.0.0.20/18
route 10.0.0.1 table 2 scope link
route default via 10.0.0.1 table 2
not route 10.0.0.0/18 scope link src 10.0.0.20
`},
		{"second card", func(in *rules.ENIInput) { in.Card, in.Device = 1, 2 }, `link up mtu 9001
address 10.0.0.20/18
route 10.0.0.1 table 10102 scope link
route default via 10.0.0.1 table 10102
not route 10.0.0.0/18 scope link src 10.0.0.20
rule 32765: from 10.0.0.20 lookup 10102
`},
		{"IPv6", ipv6ENI, `link up mtu 9001
address fd00:10::14/64
route fe80:ec2::1 table 2
route default via fe80:ec2::1 table 2
not route fd00:10::/64
rule 32765: from fd00:10::14 lookup 2
`},
		{"IPv6, second card", func(in *rules.ENIInput) { ipv6ENI(in); in.Card, in.Device = 3, 1 }, `link up mtu 9001
address fd00:10::14/64
route fe80:ec2::1 table 10301
route default via fe80:ec2::1 table 10301
not route fd00:10::/64
rule 32765: from fd00:10::14 lookup 10301
`},
		{"IPv6 trunk", func(in *rules.ENIInput) { ipv6ENI(in); in.Trunk = true }, `link up mtu 9001
address fd00:10::14/64
route fe80:ec2::1 table 2
route default via fe80:ec2::1 table 2
not route fd00:10::/64
`},
		{"IPv6 trunk without address", func(in *rules.ENIInput) {
			ipv6ENI(in)
			in.Trunk, in.PrimaryIP, in.Subnet = true, netip.Addr{}, netip.Prefix{}
		}, `link up mtu 9001
route fe80:ec2::1 table 2
route default via fe80:ec2::1 table 2
`},
		{"adopted table, subnet not masked", func(in *rules.ENIInput) {
			in.RouteTable, in.Subnet = 7, netip.MustParsePrefix("10.0.0.20/28")
		}, `link up mtu 9001
address 10.0.0.20/28
route 10.0.0.17 table 7 scope link
route default via 10.0.0.17 table 7
not route 10.0.0.16/28 scope link src 10.0.0.20
rule 32765: from 10.0.0.20 lookup 7
`},
	} {
		in := secondENI(row.change)
		if err := in.Validate(); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if d := cmp.Diff(row.want, rules.ENI(in, 0).String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
	}
}

func TestENIInput_Validate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		change func(*rules.ENIInput)
		want   string
	}{
		{func(in *rules.ENIInput) { in.Device = 0 }, "setupENINetwork should never be called on the primary ENI"},
		{func(in *rules.ENIInput) { in.RouteTable = 254 }, "setupENINetwork should never be called on the primary ENI"},
		{func(in *rules.ENIInput) { in.PrimaryIP = netip.MustParseAddr("fd00::1") }, "address fd00::1 of ENI 02:fa:4e:00:00:03 is not IPv4"},
		{func(in *rules.ENIInput) { in.Subnet = netip.MustParsePrefix("10.1.0.0/18") }, "subnet 10.1.0.0/18 of ENI 02:fa:4e:00:00:03 does not contain its address 10.0.0.20"},
		{func(in *rules.ENIInput) { in.Subnet = netip.MustParsePrefix("10.0.0.20/32") }, "subnet 10.0.0.20/32 of ENI 02:fa:4e:00:00:03 has no room for a router"},
		{func(in *rules.ENIInput) { in.PrimaryIP = netip.MustParseAddr("10.0.0.1") }, "address 10.0.0.1 of ENI 02:fa:4e:00:00:03 is its subnet's router"},
		{func(in *rules.ENIInput) { in.PrimaryIP, in.Trunk = netip.Addr{}, true }, "ENI 02:fa:4e:00:00:03 has no IPv4 address; assign it one, or detach it"},
		{func(in *rules.ENIInput) { ipv6ENI(in); in.PrimaryIP = netip.Addr{} }, "ENI 02:fa:4e:00:00:03 has no IPv6 address; assign it one, or detach it"},
		{func(in *rules.ENIInput) { in.IPv6 = true }, "address 10.0.0.20 of ENI 02:fa:4e:00:00:03 is not IPv6"},
		{func(in *rules.ENIInput) { ipv6ENI(in); in.Subnet = netip.MustParsePrefix("fd00:11::/64") }, "subnet fd00:11::/64 of ENI 02:fa:4e:00:00:03 does not contain its address fd00:10::14"},
	} {
		if err := secondENI(row.change).Validate(); err == nil || err.Error() != row.want {
			t.Errorf("%v, want %s", err, row.want)
		}
	}
}

// diffRules compares lists of rules.
func diffRules(want, got []netstate.Rule) string {
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}))
}

// diffChanges compares changes with the additions and removals of these rules.
func diffChanges(add, remove []netstate.Rule, got []netstate.Change) string {
	var want []netstate.Change
	for _, r := range add {
		want = append(want, netstate.Change{Do: netstate.AddRule, Rule: r})
	}
	for _, r := range remove {
		want = append(want, netstate.Change{Do: netstate.DelRule, Rule: r})
	}
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}))
}

func TestDiffPodRules(t *testing.T) {
	t.Parallel()
	pod := netip.MustParseAddr("10.0.0.21")
	host := netip.MustParsePrefix("10.0.0.21/32")
	to := netstate.Rule{Priority: 512, To: host, Table: 254}
	from := func(table int) netstate.Rule { return netstate.Rule{Priority: 1536, From: host, Table: table} }
	old := netstate.Rule{Priority: 1536, From: host, To: netip.MustParsePrefix("10.0.0.0/16"), Table: 2}
	others := []netstate.Rule{
		{Priority: 512, To: netip.MustParsePrefix("10.0.0.22/32"), Table: 254},
		{Priority: 1536, From: netip.MustParsePrefix("10.0.0.22/32"), Table: 2},
		{Priority: 700, From: host, Table: 99},
		{Priority: 1536, From: host, Table: 99, Other: true},
	}
	for _, row := range []struct {
		name              string
		current           []netstate.Rule
		want, add, remove []netstate.Rule
	}{
		{"new on a secondary ENI", nil, rules.PodRules(pod, 3), []netstate.Rule{to, from(3)}, nil},
		{"new on the primary ENI", nil, rules.PodRules(pod, 254), []netstate.Rule{to}, nil},
		{"number 1 is main too", nil, rules.PodRules(pod, 1), []netstate.Rule{to}, nil},
		{"there", []netstate.Rule{to, from(3)}, rules.PodRules(pod, 3), nil, nil},
		{"moved", []netstate.Rule{to, from(2), old}, rules.PodRules(pod, 3), []netstate.Rule{from(3)}, []netstate.Rule{from(2), old}},
		{"drop", []netstate.Rule{to, from(2), from(3)}, nil, nil, []netstate.Rule{to, from(2), from(3)}},
		{"for one protocol", []netstate.Rule{{Priority: 512, To: host, Protocol: 6, Table: 254}, {Priority: 1536, From: host, InLink: "eth0", Table: 3}}, nil, nil, nil},
	} {
		if d := diffChanges(row.add, row.remove, rules.DiffPodRules(append(row.current, others...), pod, row.want)); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
	}
}

func TestPodRules_IPv6(t *testing.T) {
	t.Parallel()
	pod := netip.MustParseAddr("fd00:10::8:1")
	host := netip.PrefixFrom(pod, 128)
	want := []netstate.Rule{
		{Priority: 512, To: host, Table: 254, IPv6: true},
		{Priority: 1536, From: host, Table: 3, IPv6: true},
	}
	if d := diffRules(want, rules.PodRules(pod, 3)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := rules.DiffPodRules(want, pod, want); got != nil {
		t.Errorf("there: %v", got)
	}
	if d := diffChanges(nil, want, rules.DiffPodRules(want, pod, nil)); d != "" {
		t.Errorf("drop (-want +got):\n%s", d)
	}
}

func TestENITable(t *testing.T) {
	t.Parallel()
	primary := netip.MustParseAddr("10.0.0.20")
	from := func(table int) netstate.Rule {
		return netstate.Rule{Priority: 32765, From: netip.PrefixFrom(primary, 32), Table: table}
	}
	other := func(r netstate.Rule) netstate.Rule { r.Other = true; return r }
	otherAddress := netstate.Rule{Priority: 32765, From: netip.MustParsePrefix("10.0.0.21/32"), Table: 9}
	for _, row := range []struct {
		name         string
		card, device int
		current      []netstate.Rule
		want         int
	}{
		{"first card", 0, 2, []netstate.Rule{from(77)}, 3},
		{"no rule", 1, 2, nil, 10102},
		{"of another address", 1, 2, []netstate.Rule{otherAddress}, 10102},
		{"one rule", 1, 2, []netstate.Rule{otherAddress, from(77)}, 77},
		{"several, one of the older numbering", 1, 2, []netstate.Rule{from(77), from(7), from(10102)}, 7}, // 2 + 1 + 1·4
		{"several, none of it", 1, 2, []netstate.Rule{from(77), from(78)}, 10102},
		{"the same table twice", 1, 2, []netstate.Rule{from(77), {Priority: 30000, From: netip.PrefixFrom(primary, 32), Table: 77}}, 10102},
		{"into main", 1, 2, []netstate.Rule{from(254), from(255)}, 10102},
		{"with conditions", 1, 2, []netstate.Rule{other(from(77))}, 10102},
		{"of the usual table", 1, 2, []netstate.Rule{from(10102)}, 10102},
	} {
		if got := rules.ENITable(row.current, row.card, row.device, primary, 4); got != row.want {
			t.Errorf("%s: table %d, want %d", row.name, got, row.want)
		}
	}
	if got := rules.ENITable(nil, 2, 1, netip.Addr{}, 4); got != 10201 {
		t.Errorf("without an address: table %d", got)
	}
}
