package hostnet

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

// observe reads a pod's address. It clears the index and the MAC, which the kernel chooses.
func (n *bed) observe(addr, link string) introspect.PodKernel {
	n.t.Helper()
	var got introspect.PodKernel
	n.do(func() (err error) {
		got, err = n.host.ObservePod(n.t.Context(), netip.MustParseAddr(addr), link)
		return err
	})
	if l := got.Link; l != nil {
		if l.Index <= 0 || len(l.MAC) != 17 {
			n.t.Errorf("link %+v", l)
		}
		l.Index, l.MAC = 0, ""
	}
	return got
}

func samePod(t *testing.T, want, got introspect.PodKernel) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +observed):\n%s", d)
	}
}

func TestObservePod(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.sh(`ip link add eth1 type veth peer name eth1far; ip link set eth1far up; ip link set eth1 up
ip route add default via 10.0.0.1 dev eth1 onlink table 2
ip route add 10.0.0.1 dev eth1 scope link table 2
ip neigh add 10.0.0.21 lladdr 02:00:00:00:00:21 dev eni0761ccbeace nud permanent
ip neigh add 10.0.0.99 lladdr 02:00:00:00:00:99 dev eni0761ccbeace nud permanent
ip rule add priority 1536 from 10.0.0.21 to 10.0.0.0/16 lookup 3`)
	p := netip.MustParsePrefix
	link := func(name string) *introspect.PodLink {
		return &introspect.PodLink{Name: name, Kind: "veth", MTU: 1500, Up: true}
	}
	toPod := func(addr string) introspect.PodRule {
		return introspect.PodRule{Priority: 512, To: p(addr), Table: 254}
	}
	on := func(addr, name string) []introspect.PodRoute {
		return []introspect.PodRoute{{Table: 254, To: p(addr), Link: name}}
	}
	// On the primary ENI, with the pod's end of the link down.
	samePod(t, introspect.PodKernel{
		Link: link("eni0d7763386da"), Rules: []introspect.PodRule{toPod("10.0.0.12/32")}, Routes: on("10.0.0.12/32", "eni0d7763386da"),
	}, n.observe("10.0.0.12", "eni0d7763386da"))
	// On a secondary ENI, with a rule of an old release.
	samePod(t, introspect.PodKernel{
		Link: link("eni0761ccbeace"),
		Rules: []introspect.PodRule{
			toPod("10.0.0.21/32"),
			{Priority: 1536, From: p("10.0.0.21/32"), Table: 2},
			{Priority: 1536, From: p("10.0.0.21/32"), To: p("10.0.0.0/16"), Table: 3},
		},
		Routes: on("10.0.0.21/32", "eni0761ccbeace"),
		Tables: []introspect.PodRoute{
			{Table: 2, To: p("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.0.0.1"), Link: "eth1"},
			{Table: 2, To: p("10.0.0.1/32"), Link: "eth1"},
		},
		Neighbours: []introspect.PodNeighbour{{Address: netip.MustParseAddr("10.0.0.21"), Link: "eni0761ccbeace", MAC: "02:00:00:00:00:21", State: "permanent"}},
	}, n.observe("10.0.0.21", "eni0761ccbeace"))
	// Only rules are left; then nothing.
	samePod(t, introspect.PodKernel{
		Rules: []introspect.PodRule{toPod("10.0.0.40/32"), {Priority: 1536, From: p("10.0.0.40/32"), Table: 3}},
	}, n.observe("10.0.0.40", "eni00000000000"))
	samePod(t, introspect.PodKernel{}, n.observe("10.0.0.98", "eni00000000001"))
}

func TestObservePod_Running(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	pod := newBed(t, "iptables-nft").ns
	n.sh("POD=" + pod.Path + `
ip link add eni0d7763386da mtu 9001 type veth peer name pod1 netns $POD; ip link set eni0d7763386da up
nsenter --net=$POD ip link set pod1 up
ip -6 route add fd00::21 dev eni0d7763386da; ip -6 rule add priority 512 to fd00::21 lookup main`)
	var got introspect.PodKernel
	testenv.Eventually(t, "the link runs", func() bool {
		got = n.observe("fd00::21", "eni0d7763386da")
		return got.Link != nil && got.Link.Running
	})
	p := netip.MustParsePrefix("fd00::21/128")
	samePod(t, introspect.PodKernel{
		Link:   &introspect.PodLink{Name: "eni0d7763386da", Kind: "veth", MTU: 9001, Up: true, Running: true},
		Rules:  []introspect.PodRule{{Priority: 512, To: p, Table: 254}},
		Routes: []introspect.PodRoute{{Table: 254, To: p, Link: "eni0d7763386da"}},
	}, got)
}

func TestObservePod_IPv6(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.sh(sixPods + `
ip link add eth1 type veth peer name eth1far; ip link set eth1far up; ip link set eth1 up
ip -6 route add fe80:ec2::1 dev eth1 table 10101; ip -6 route add default via fe80:ec2::1 dev eth1 table 10101
ip neigh add fd00:10::21 lladdr 02:00:00:00:00:21 dev eni0761ccbeace nud permanent`)
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	samePod(t, introspect.PodKernel{
		Link: &introspect.PodLink{Name: "eni0761ccbeace", Kind: "veth", MTU: 1500, Up: true},
		Rules: []introspect.PodRule{
			{Priority: 512, To: p("fd00:10::21/128"), Table: 254}, {Priority: 1536, From: p("fd00:10::21/128"), Table: 10101},
		},
		Routes: []introspect.PodRoute{{Table: 254, To: p("fd00:10::21/128"), Link: "eni0761ccbeace"}},
		Tables: []introspect.PodRoute{
			{Table: 10101, To: p("fe80:ec2::1/128"), Link: "eth1"}, {Table: 10101, To: p("::/0"), Gateway: a("fe80:ec2::1"), Link: "eth1"},
		},
		Neighbours: []introspect.PodNeighbour{{Address: a("fd00:10::21"), Link: "eni0761ccbeace", MAC: "02:00:00:00:00:21", State: "permanent"}},
	}, n.observe("fd00:10::21", "eni0761ccbeace"))
}

func TestObservePod_Refuses(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	for _, addr := range []netip.Addr{{}, netip.MustParseAddr("fe80::1%eth0")} {
		if _, err := n.host.ObservePod(t.Context(), addr, "eth0"); err == nil {
			t.Errorf("%v: no error", addr)
		}
	}
}
