package vpc_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestBinary_DelBranchIPv6: rules and routes of IPv6 branch pods on kernels without VLAN support.
// A macvlan with the VLAN device's name replaces the device, and the test creates it and
// everything else ADD would have. plugin/vpc/branch has the full test, with VLANs.
func TestBinary_DelBranchIPv6(t *testing.T) {
	testenv.RequireKernel(t, "veth", "macvlan")
	const pod = "2001:db8::90"
	own := &net.IPNet{IP: net.ParseIP(pod), Mask: net.CIDRMask(128, 128)}
	for mode, host := range map[string]string{"strict": "vlan0d7763386da", "standard": "eni0d7763386da"} {
		for _, way := range []string{"previous result", "the daemon's word", "another pod's VLAN id"} {
			t.Run(mode+", "+way, func(t *testing.T) {
				node := netns.New(t)
				do(t, node, func() error { return branchOfIPv6(host, own, mode == "strict", way == "another pod's VLAN id") })
				if got := podRules(t, node); len(got) != 2 {
					t.Fatalf("rules %q", got)
				}
				box := newSandbox(t, node, "abc001", "web-0", "/run/netns/none")
				stdin := box.stdin()
				if way == "the daemon's word" {
					(&server{del: func(*cniwire.DelRequest) *cniwire.DelReply {
						return &cniwire.DelReply{Success: true, PodVLANID: 3, Allocations: []cniwire.Allocation{{IPv6: pod, Device: -1}}}
					}}).serve(t)
				} else {
					result := podResults["branch IPv6"]
					result.vlan, result.nics = 3, slices.Clone(result.nics)
					result.nics[0].HostLink = host
					stdin = box.stdin(`,"prevResult":` + result.byLibrary(t, "0.4.0", box.netns))
				}
				for range 2 {
					box.expect(t, "DEL", inMode(stdin, mode), 0, "")
					stays := way == "another pod's VLAN id"
					branch := slices.ContainsFunc(podRules(t, node), func(r string) bool { return strings.Contains(r, "iif") || strings.Contains(r, "10:") })
					if slices.Contains(linkNames(t, node), "vlan.eth.3") != stays || branch != (stays && mode == "strict") {
						t.Errorf("links %q, rules %q\n%s", linkNames(t, node), podRules(t, node), box.logged(t))
					}
					if !stays && len(podRules(t, node)) > 0 {
						t.Errorf("rules left: %q", podRules(t, node))
					}
				}
			})
		}
	}
}

// branchOfIPv6 creates the host side of a branch pod. If elsewhere is set, the VLAN's table
// leads to another pod.
func branchOfIPv6(host string, own *net.IPNet, strict, elsewhere bool) error {
	trunk := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "trunk0"}, PeerName: "vpc0"}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: host}, PeerName: "peer"}
	other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "vlanother"}, PeerName: "peer2"}
	for _, l := range []*netlink.Veth{trunk, veth, other} {
		if err := netlink.LinkAdd(l); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
	}
	device := &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "vlan.eth.3", ParentIndex: trunk.Index}, Mode: netlink.MACVLAN_MODE_BRIDGE}
	if err := netlink.LinkAdd(device); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(device); err != nil {
		return err
	}
	var rules []*netlink.Rule
	add := func(priority, table int) *netlink.Rule {
		r := netlink.NewRule()
		r.Priority, r.Table, r.Family = priority, table, netlink.FAMILY_V6
		rules = append(rules, r)
		return r
	}
	table := 254
	if strict {
		table = 103
		add(10, 103).IifName = "vlan.eth.3"
		add(10, 103).IifName = host
	} else {
		add(512, 254).Dst = own
		add(1536, 103).Src = own
	}
	for _, r := range rules {
		if err := netlink.RuleAdd(r); err != nil {
			return err
		}
	}
	if elsewhere {
		theirs := &net.IPNet{IP: net.ParseIP("2001:db8::99"), Mask: own.Mask}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: other.Index, Dst: theirs, Scope: netlink.SCOPE_LINK, Table: 103})
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: veth.Index, Dst: own, Scope: netlink.SCOPE_LINK, Table: table})
}
