package hostnet

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

func TestConcernsFilters(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		table, chain string
		gone, rule   bool
		want         bool
	}{
		{"aws-cni", "", true, false, true},
		{"aws-cni", "snat-mark", false, true, true},
		{"nat", "AWS-SNAT-CHAIN-0", true, true, true},
		{"nat", "AWS-CONNMARK-CHAIN-0", false, true, true},
		{"nat", "CNI-E4-0011223344", true, false, false}, // with each pod that has egress
		{"nat", "POSTROUTING", true, true, true},
		{"mangle", "PREROUTING", true, true, true},
		{"filter", "FORWARD", true, true, true},
		{"nat", "", true, false, true},
		{"nat", "", false, false, false},
		{"nat", "POSTROUTING", false, true, false}, // someone adds a rule
		{"nat", "KUBE-SVC-ERIFXISQEP7F7OF4", true, true, false},
		{"nat", "KUBE-SERVICES", false, true, false},
		{"filter", "INPUT", true, true, false},
		{"kube-proxy", "services", true, false, false},
		{"kube-proxy", "AWS-SNAT-CHAIN-0", true, false, false},
	} {
		n := rtnl.FilterNotice{Table: []byte(row.table), Chain: []byte(row.chain), Gone: row.gone, Rule: row.rule}
		if got := concernsFilters(n); got != row.want {
			t.Errorf("%s/%s gone %t rule %t: %t, want %t", row.table, row.chain, row.gone, row.rule, got, row.want)
		}
	}
}

func TestConcernsEgress(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		table, chain string
		gone, want   bool
	}{
		{"nat", "CNI-E4-0011223344", true, true},
		{"nat", "CNI-E6-0011223344", true, true},
		{"nat", "CNI-E4-0011223344", false, false}, // an ADD
		{"nat", "POSTROUTING", true, true},
		{"nat", "POSTROUTING", false, false},
		{"nat", "", true, true},
		{"nat", "", false, false},
		{"nat", "CNI-DN-0011223344", true, false},
		{"nat", "KUBE-SERVICES", true, false},
		{"filter", "POSTROUTING", true, false},
	} {
		if got := concernsEgress(rtnl.FilterNotice{Table: []byte(row.table), Chain: []byte(row.chain), Gone: row.gone}); got != row.want {
			t.Errorf("%s/%s gone %t: %t, want %t", row.table, row.chain, row.gone, got, row.want)
		}
	}
}

func TestMonitor_Change(t *testing.T) {
	t.Parallel()
	pod := netip.MustParsePrefix("10.0.0.21/32")
	primary := netstate.MAC{2, 1}
	m := NewMonitor(primary.String())
	link := func(index int32, name, kind string, mac netstate.MAC, flags uint32) rtnl.Notice {
		return rtnl.Notice{Kind: rtnl.NoticeLink, Link: netstate.Link{Index: index, Name: name, Kind: kind, MAC: mac, Flags: flags, MTU: 9001}}
	}
	rule := func(kind rtnl.NoticeKind, r netstate.Rule) rtnl.Notice { return rtnl.Notice{Kind: kind, Rule: r} }
	route := func(kind rtnl.NoticeKind, dst netip.Prefix, table int) rtnl.Notice {
		return rtnl.Notice{Kind: kind, Route: netstate.Route{Dst: dst, Table: table}}
	}
	const podLink = "eni0d7763386da"
	for i, row := range []struct {
		n    rtnl.Notice
		want NoticeKind
	}{
		{link(2, "eth0", "", primary, unix.IFF_UP), ChangedLinks}, // unknown
		{link(2, "eth0", "", primary, unix.IFF_UP), 0},
		{link(2, "eth0", "", primary, 0), ChangedLinks},
		{link(7, podLink, "veth", netstate.MAC{2, 2}, 0), 0}, // an ADD
		{link(7, podLink, "veth", netstate.MAC{2, 2}, unix.IFF_UP), 0},
		{link(7, podLink, "veth", netstate.MAC{2, 3}, unix.IFF_UP), ChangedLinks},
		{link(7, podLink, "veth", netstate.MAC{2, 2}, unix.IFF_UP), 0}, // as it was made
		{link(7, podLink, "veth", netstate.MAC{2, 2}, 0), ChangedLinks},
		{rtnl.Notice{Kind: rtnl.NoticeSetting, Setting: 7}, 0},
		{rtnl.Notice{Kind: rtnl.NoticeSetting, Setting: 2}, ChangedNode},
		{rtnl.Notice{Kind: rtnl.NoticeSetting, Setting: 9}, 0},
		{rtnl.Notice{Kind: rtnl.NoticeSetting, Setting: rtnl.SettingOfAll}, ChangedNode},
		{rtnl.Notice{Kind: rtnl.NoticeNoLink, Link: netstate.Link{Index: 7, Name: podLink, Kind: "veth"}}, 0},
		{rtnl.Notice{Kind: rtnl.NoticeNoLink, Link: netstate.Link{Index: 8, Name: "vlan.eth.3", Kind: "vlan"}}, ChangedLinks},
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 512, To: pod, Table: 254}), ChangedPod},
		{rule(rtnl.NoticeRule, netstate.Rule{Priority: 512, To: pod, Table: 254}), 0}, // an ADD's
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 1536, From: pod, Table: 2}), ChangedPod},
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 10, InLink: "vlan.eth.3", Table: 103}), ChangedLinks},
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 32765, From: pod, Table: 2}), ChangedLinks},
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 1024, Table: 254}), ChangedNode},
		{rule(rtnl.NoticeRule, netstate.Rule{Priority: 1024, Table: 254}), 0},
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 20, Table: 255}), ChangedNode},
		{rule(rtnl.NoticeRule, netstate.Rule{Table: 255}), ChangedNode},
		{rule(rtnl.NoticeNoRule, netstate.Rule{Priority: 5000, Table: 254}), 0},
		{route(rtnl.NoticeNoRoute, pod, 254), ChangedPod},
		{route(rtnl.NoticeRoute, pod, 254), ChangedPod}, // it replaced another route
		{route(rtnl.NoticeNoRoute, netip.MustParsePrefix("10.0.0.0/16"), 254), 0},
		{route(rtnl.NoticeNoRoute, netip.MustParsePrefix("0.0.0.0/0"), 2), ChangedLinks},
		{rtnl.Notice{Kind: rtnl.NoticeNoAddress}, ChangedLinks},
	} {
		got := m.change(row.n)
		if got.Kind != row.want || got.Kind == ChangedPod && got.Pod != pod.Addr() {
			t.Errorf("row %d: %+v, want kind %d", i, got, row.want)
		}
	}
	if _, ok := m.MadeWith(7); ok {
		t.Error("a link that is gone is remembered")
	}
	m.change(link(12, podLink, "veth", netstate.MAC{2, 9}, 0))
	m.change(link(12, podLink, "veth", netstate.MAC{2, 8}, 0))
	if mac, ok := m.MadeWith(12); !ok || mac != (netstate.MAC{2, 9}) {
		t.Errorf("made with %v, %t", mac, ok)
	}
}

// TestMonitor_Know: a link whose notices were lost is not mistaken for a later one with the
// same index.
func TestMonitor_Know(t *testing.T) {
	t.Parallel()
	const one, other = "eni0d7763386da", "eni1111111111a"
	m := NewMonitor("")
	link := func(index int32, name string, mac netstate.MAC) netstate.Link {
		return netstate.Link{Index: index, Name: name, Kind: "veth", MAC: mac}
	}
	notify := func(l netstate.Link) { m.change(rtnl.Notice{Kind: rtnl.NoticeLink, Link: l}) }
	know := func(list ...netstate.Link) { m.Sync(&View{State: netstate.State{Links: list}}) }
	expect := func(when string, index int32, want netstate.MAC) {
		t.Helper()
		if got, ok := m.MadeWith(index); got != want || ok != (want != netstate.MAC{}) {
			t.Errorf("%s: link %d was made with %v, %t", when, index, got, ok)
		}
	}
	a, b := netstate.MAC{2, 1}, netstate.MAC{2, 2}
	notify(link(7, one, a))
	notify(link(7, other, b))
	expect("another name under the index", 7, b)

	notify(link(8, one, a))
	m.BeginView()
	know(link(7, other, b), link(8, one, b))
	expect("a view that shows it with another address", 8, a)
	m.BeginView()
	notify(link(9, "eni2222222222b", a)) // after the view began
	know(link(7, other, b))
	expect("gone", 8, netstate.MAC{})
	expect("came since the view", 9, a)
	m.BeginView()
	know(link(7, "eni3333333333c", a), link(9, "eni2222222222b", a))
	expect("another name in the view", 7, netstate.MAC{})
	expect("still there", 9, a)

	m.noteLost(func(...Notice) {})(Notice{Kind: LostChanges})
	m.BeginView()
	know(link(9, "eni2222222222b", b))
	expect("perhaps another one of that name", 9, netstate.MAC{})
	if len(m.links) != 1 {
		t.Errorf("%d links are remembered", len(m.links))
	}
}
