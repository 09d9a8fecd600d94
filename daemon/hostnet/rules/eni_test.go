package rules_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/hostnet/rules"
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

func TestENI(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*rules.ENIInput)
		want   string
	}{
		// Texts as recorded, links left out.
		{"second ENI", func(*rules.ENIInput) {}, `link up mtu 9001
address 10.0.0.20/18
route 10.0.0.1 table 2 scope link
route default via 10.0.0.1 table 2
not route 10.0.0.0/18 scope link src 10.0.0.20
rule 32765:	from 10.0.0.20 lookup 2
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
rule 32765:	from 10.0.0.20 lookup 10102
`},
		{"adopted table, subnet not masked", func(in *rules.ENIInput) {
			in.RouteTable, in.Subnet = 7, netip.MustParsePrefix("10.0.0.20/28")
		}, `link up mtu 9001
address 10.0.0.20/28
route 10.0.0.17 table 7 scope link
route default via 10.0.0.17 table 7
not route 10.0.0.16/28 scope link src 10.0.0.20
rule 32765:	from 10.0.0.20 lookup 7
`},
	} {
		in := secondENI(row.change)
		if err := in.Validate(); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if d := cmp.Diff(row.want, rules.ENI(in).String()); d != "" {
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
	} {
		if err := secondENI(row.change).Validate(); err == nil || err.Error() != row.want {
			t.Errorf("%v, want %s", err, row.want)
		}
	}
}

// diffRules compares lists of rules.
func diffRules(want, got []rules.IPRule) string {
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}))
}

func TestDiffNodeRules(t *testing.T) {
	t.Parallel()
	want := rules.Node(recordedNode(moreServices)).IPRules
	mark := func(m uint32) rules.IPRule { return rules.IPRule{Priority: 1024, Mark: m, Mask: m, Table: 254} }
	service := func(cidr string) rules.IPRule {
		return rules.IPRule{Priority: 1535, To: netip.MustParsePrefix(cidr), Table: 254}
	}
	foreign := []rules.IPRule{
		{Priority: 0, Table: 255},
		{Priority: 1024, Mark: 0x40, Mask: 0x40, Table: 9},
		{Priority: 1024, Mark: 0x40, Mask: 0xc0, Table: 254},
		{Priority: 1024, Mark: 0x40, Mask: 0x40, Table: 254, Other: true},
		{Priority: 1025, Mark: 0x40, Mask: 0x40, Table: 254},
		{Priority: 1535, From: netip.MustParsePrefix("10.0.0.0/8"), To: netip.MustParsePrefix("10.0.0.0/8"), Table: 254},
		{Priority: 32766, Table: 254},
	}
	add, remove := rules.DiffNodeRules(foreign, want)
	if d := diffRules(want, add); d != "" || remove != nil {
		t.Errorf("fresh: add (-want +got):\n%sremove %v", d, remove)
	}
	current := append(append([]rules.IPRule{mark(0x40), service("172.21.0.0/16"), mark(0x80)}, foreign...), mark(0x80))
	add, remove = rules.DiffNodeRules(current, want)
	if d := diffRules([]rules.IPRule{service("172.20.0.0/16"), service("10.9.8.7/32")}, add); d != "" {
		t.Errorf("add (-want +got):\n%s", d)
	}
	if d := diffRules([]rules.IPRule{mark(0x40), service("172.21.0.0/16"), mark(0x80)}, remove); d != "" {
		t.Errorf("remove (-want +got):\n%s", d)
	}
	if add, remove := rules.DiffNodeRules(append(foreign, want...), want); add != nil || remove != nil {
		t.Errorf("same: add %v, remove %v", add, remove)
	}
}

func TestDiffPodRules(t *testing.T) {
	t.Parallel()
	pod := netip.MustParseAddr("10.0.0.21")
	host := netip.MustParsePrefix("10.0.0.21/32")
	to := rules.IPRule{Priority: 512, To: host, Table: 254}
	from := func(table int) rules.IPRule { return rules.IPRule{Priority: 1536, From: host, Table: table} }
	old := rules.IPRule{Priority: 1536, From: host, To: netip.MustParsePrefix("10.0.0.0/16"), Table: 2}
	others := []rules.IPRule{
		{Priority: 512, To: netip.MustParsePrefix("10.0.0.22/32"), Table: 254},
		{Priority: 1536, From: netip.MustParsePrefix("10.0.0.22/32"), Table: 2},
		{Priority: 700, From: host, Table: 99},
		{Priority: 1536, From: host, Table: 99, Other: true},
	}
	for _, row := range []struct {
		name              string
		current           []rules.IPRule
		want, add, remove []rules.IPRule
	}{
		{"new on a secondary ENI", nil, rules.PodRules(pod, 3), []rules.IPRule{to, from(3)}, nil},
		{"new on the primary ENI", nil, rules.PodRules(pod, 254), []rules.IPRule{to}, nil},
		{"number 1 is main too", nil, rules.PodRules(pod, 1), []rules.IPRule{to}, nil},
		{"there", []rules.IPRule{to, from(3)}, rules.PodRules(pod, 3), nil, nil},
		{"moved", []rules.IPRule{to, from(2), old}, rules.PodRules(pod, 3), []rules.IPRule{from(3)}, []rules.IPRule{from(2), old}},
		{"drop", []rules.IPRule{to, from(2), from(3)}, nil, nil, []rules.IPRule{to, from(2), from(3)}},
	} {
		add, remove := rules.DiffPodRules(append(row.current, others...), pod, row.want)
		if d := diffRules(row.add, add); d != "" {
			t.Errorf("%s: add (-want +got):\n%s", row.name, d)
		}
		if d := diffRules(row.remove, remove); d != "" {
			t.Errorf("%s: remove (-want +got):\n%s", row.name, d)
		}
	}
}

func TestIPRule_String(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule rules.IPRule
		want string // as `ip rule` prints
	}{
		{rules.IPRule{Priority: 512, To: netip.MustParsePrefix("10.0.0.12/32"), Table: 254}, "512:\tfrom all to 10.0.0.12 lookup main"},
		{rules.IPRule{Priority: 1024, Mark: 0x80, Mask: 0x80, Table: 254}, "1024:\tfrom all fwmark 0x80/0x80 lookup main"},
		{rules.IPRule{Priority: 1024, Mark: 0x80, Mask: 0xffffffff, Table: 254}, "1024:\tfrom all fwmark 0x80 lookup main"},
		{rules.IPRule{Priority: 1535, To: netip.MustParsePrefix("172.20.0.0/16"), Table: 254}, "1535:\tfrom all to 172.20.0.0/16 lookup main"},
		{rules.IPRule{Priority: 32765, From: netip.MustParsePrefix("10.0.0.20/32"), Table: 2}, "32765:\tfrom 10.0.0.20 lookup 2"},
	} {
		if got := row.rule.String(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
