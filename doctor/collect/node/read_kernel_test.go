package node

import (
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestRead_Kernel: links, rules, routes and neighbours are read from the kernel, including ones that
// a healthy node lacks.
func TestRead_Kernel(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	pod := netns.New(t)
	name := netnames.HostVeth("eni", "default", "web", 0) // the pod of the checkpoint
	host := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 9001}, PeerName: "eth0", PeerNamespace: netlink.NsFd(pod.FD())}
	must(t, netlink.LinkAdd(host))
	t.Cleanup(func() { must(t, netlink.LinkDel(host)) })
	must(t, netlink.LinkSetUp(host))
	link, err := netlink.LinkByName(name)
	must(t, err)
	must(t, pod.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(eth0); err != nil {
			return err
		}
		return netlink.NeighAdd(&netlink.Neigh{
			LinkIndex: eth0.Attrs().Index, State: unix.NUD_PERMANENT, IP: net.IPv4(169, 254, 1, 1), HardwareAddr: link.Attrs().HardwareAddr,
		})
	}))
	address, network := netip.MustParseAddr("10.9.0.7"), func(s string) *net.IPNet { _, n, _ := net.ParseCIDR(s); return n }
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: network("10.9.0.7/32"), Scope: unix.RT_SCOPE_LINK}))
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: network("0.0.0.0/0"), Gw: net.IPv4(10, 9, 0, 1), Table: 107, Flags: int(netlink.FLAG_ONLINK)}))
	rule := func(change func(*netlink.Rule)) {
		r := netlink.NewRule()
		r.Family, r.Table = unix.AF_INET, 107
		change(r)
		must(t, netlink.RuleAdd(r))
		t.Cleanup(func() { must(t, netlink.RuleDel(r)) })
	}
	rule(func(r *netlink.Rule) { r.Priority, r.IifName = 10, "vlan.eth.7" })
	rule(func(r *netlink.Rule) { r.Priority, r.Mark, r.Mask, r.Table = 1024, 0x80, new(uint32(0x80)), 254 })
	rule(func(r *netlink.Rule) { r.Priority, r.Src = 1536, network("10.9.0.7/32") })
	rule(func(r *netlink.Rule) { r.Priority, r.Family, r.Dst = 512, unix.AF_INET6, network("fd00::7/128") })
	rule(func(r *netlink.Rule) { r.Priority, r.Invert, r.Src = 77, true, network("10.0.0.0/8") }) // not reported

	o := options(t, hostRoot(t, asIs))
	r := Read(t.Context(), o)
	has := func(source string, missing string, list any, want any) {
		t.Helper()
		var entries []json.RawMessage
		text, err := json.Marshal(list)
		must(t, err)
		must(t, json.Unmarshal(text, &entries))
		one, err := json.Marshal(want)
		must(t, err)
		if !slices.ContainsFunc(entries, func(e json.RawMessage) bool { return string(e) == string(one) }) {
			t.Errorf("%s has no %s: %s %s", source, one, missing, text)
		}
	}
	mac := link.Attrs().HardwareAddr.String()
	has("kern.link", r.Links.Missing, r.Links.Content, evidence.Link{Name: name, Pod: "default/web", Kind: "veth", MAC: mac, MTU: new(9001), Up: new(true)})
	has("kern.rule", r.Rules.Missing, r.Rules.Content, evidence.Rule{Family: 4, Priority: 10, IIF: "vlan.eth.7", Table: "107"})
	has("kern.rule", r.Rules.Missing, r.Rules.Content, evidence.Rule{Family: 4, Priority: 1024, FWMark: "0x80/0x80", Table: "main"})
	has("kern.rule", r.Rules.Missing, r.Rules.Content, evidence.Rule{Family: 4, Priority: 1536, From: netip.PrefixFrom(address, 32), Table: "107"})
	has("kern.rule", r.Rules.Missing, r.Rules.Content, evidence.Rule{Family: 6, Priority: 512, To: netip.MustParsePrefix("fd00::7/128"), Table: "107"})
	if slices.ContainsFunc(r.Rules.Content, func(r evidence.Rule) bool { return r.Priority == 77 }) {
		t.Error("an inverted rule looks as if it applied")
	}
	has("kern.route", r.Routes.Missing, r.Routes.Content, evidence.Route{Family: 4, Table: 254, To: "10.9.0.7/32", Pod: "default/web"})
	has("kern.route", r.Routes.Missing, r.Routes.Content, evidence.Route{Family: 4, Table: 107, To: "default", Via: netip.MustParseAddr("10.9.0.1"), Pod: "default/web"})

	// Namespaces are searched below the root, which does not contain this one.
	c := newCollector(t.Context(), Options{})
	found, err := c.neighbours(t.Context())
	want := []neighbour{{evidence.Neighbour{Address: netnames.GatewayIPv4(0), MAC: mac, State: "permanent"}, name}}
	if d := cmp.Diff(want, found, cmp.Comparer(func(a, b neighbour) bool { return a == b })); d != "" || err != nil {
		t.Errorf("neighbours: %v (-want +got):\n%s", err, d)
	}
}

// TestCounters: the veth driver also has counters, under other names.
func TestCounters(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "counted"}, PeerName: "peer"}
	must(t, netlink.LinkAdd(pair))
	t.Cleanup(func() { must(t, netlink.LinkDel(pair)) })
	peer, err := netlink.LinkByName("peer")
	must(t, err)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(socket)
	got, err := counters(socket, "counted")
	if err != nil || got["peer_ifindex"] != uint64(peer.Attrs().Index) {
		t.Errorf("counters: %v, %v; want peer_ifindex %d", got, err, peer.Attrs().Index)
	}
	var sum evidence.Allowance
	for name, n := range map[string]uint64{"bw_in_allowance_exceeded": 3, "pps_allowance_exceeded": 0, "conntrack_allowance_available": 9} {
		reading.AddAllowance(&sum, name, n)
		reading.AddAllowance(&sum, name, n) // of another interface
	}
	if d := cmp.Diff(evidence.Allowance{BWIn: new(6), PPS: new(0)}, sum); d != "" {
		t.Errorf("allowances (-want +got):\n%s", d)
	}
}
