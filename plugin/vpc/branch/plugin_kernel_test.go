package branch_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// trunk creates a link in place of the trunk ENI and returns its index.
func trunk(t *testing.T, node *netns.NS) (index int32) {
	t.Helper()
	do(t, node, func() error {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "trunk0", MTU: 9001}, PeerName: "vpc0", PeerMTU: 9001}
		if err := netlink.LinkAdd(l); err != nil {
			return err
		}
		index = int32(l.Attrs().Index)
		peer, err := netlink.LinkByName("vpc0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(peer); err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	return index
}

func branchReply(trunk, vlan int32, mac, address string) *cniwire.AddReply {
	return &cniwire.AddReply{Success: true, PodVLANID: vlan, PodENIMAC: mac, PodENISubnetGW: "10.0.0.1", ParentIfIndex: trunk,
		Allocations: []cniwire.Allocation{{IPv4: address, Device: -1}}}
}

// routesOf prints the IPv4 routes of a table.
func routesOf(t *testing.T, ns *netns.NS, table int) []string {
	return routesIn(t, ns, netlink.FAMILY_V4, table)
}

func routesIn(t *testing.T, ns *netns.NS, family, table int) (out []string) {
	t.Helper()
	do(t, ns, func() error {
		list, err := netns.Dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return err
		}
		for _, r := range list {
			l, err := netlink.LinkByIndex(r.LinkIndex)
			if err != nil {
				return err
			}
			line := r.Dst.String()
			if r.Gw != nil {
				line += " via " + r.Gw.String()
			}
			out = append(out, line+" dev "+l.Attrs().Name)
		}
		return nil
	})
	slices.Sort(out)
	return out
}

func inMode(stdin, mode string) string {
	return strings.Replace(stdin, `"podSGEnforcingMode":"strict"`, `"podSGEnforcingMode":"`+mode+`"`, 1)
}

// TestPlugin: a pod with a branch ENI, in both modes, from ADD to each kind of DEL.
func TestPlugin(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	const mac, address = "02:00:00:00:00:03", "10.0.0.90"
	for mode, row := range map[string]struct {
		host  string
		rules string
		table []string
		main  string
	}{
		"strict": {"vlan0d7763386da", "10: iif vlan.eth.3 lookup 103\n10: iif vlan0d7763386da lookup 103\n",
			[]string{"0.0.0.0/0 via 10.0.0.1 dev vlan.eth.3", "10.0.0.1/32 dev vlan.eth.3", "10.0.0.90/32 dev vlan0d7763386da"}, ""},
		"standard": {"eni0d7763386da", "512: to 10.0.0.90 lookup 254\n1536: from 10.0.0.90 lookup 103\n",
			[]string{"0.0.0.0/0 via 10.0.0.1 dev vlan.eth.3", "10.0.0.1/32 dev vlan.eth.3"}, "10.0.0.90/32 dev eni0d7763386da\n"},
	} {
		t.Run(mode, func(t *testing.T) {
			node, pod := netns.New(t), netns.New(t)
			parent := trunk(t, node)
			s := (&server{
				add: func(*cniwire.AddRequest) *cniwire.AddReply { return branchReply(parent, 3, mac, address) },
				del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
			}).serve(t)
			box := newSandbox(t, node, "abc001", "web-0", pod.Path)
			result := resultOf(row.host, address, "3", pod.Path)
			before := []string{"", ipRoute(t, node), strings.Join(linkNames(t, node), " ")}
			for range 2 { // the second runs over the result of the first
				box.expect(t, "ADD", inMode(box.stdin(), mode), 0, result)
				if diff := cmp.Diff(row.rules, ipRule(t, node)); diff != "" {
					t.Errorf("rules:\n%s", diff)
				}
				if diff := cmp.Diff(row.table, routesOf(t, node, 103)); diff != "" {
					t.Errorf("table 103:\n%s", diff)
				}
				if diff := cmp.Diff(row.main, ipRoute(t, node)); diff != "" {
					t.Errorf("main table:\n%s", diff)
				}
			}
			do(t, node, func() error {
				l, err := netlink.LinkByName("vlan.eth.3")
				if err != nil {
					return err
				}
				if v, ok := l.(*netlink.Vlan); !ok || v.VlanId != 3 || v.ParentIndex != int(parent) || v.HardwareAddr.String() != mac || v.MTU != 9001 || v.Flags&net.FlagUp == 0 {
					t.Errorf("device %+v", l)
				}
				return nil
			})
			info, err := os.Stat(filepath.Join(recordsDir, "abc001-eth0.json"))
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("record: %v %v", info, err)
			}
			box.expect(t, "CHECK", inMode(box.stdin(`,"prevResult":`+result), mode), 0, "")
			status := strings.Replace(box.stdin(), `"0.4.0"`, `"1.1.0"`, 1)
			box.expect(t, "STATUS", status, 0, "")
			do(t, node, func() error { return netlink.RuleDel(ruleOf(t, row.rules)) })
			if code, out := box.run(t, "STATUS", status); code != 1 || !strings.Contains(out, `"code": 51`) || !strings.Contains(out, "the first is "+address+" behind "+row.host) {
				t.Errorf("STATUS without a rule: %d %s", code, out)
			}
			// The other mode, and no namespace: the record proves that the device is the pod's.
			box.expect(t, "DEL", inMode(box.stdin(`,"prevResult":`+result), "standard"), 0, "", "CNI_NETNS=")
			do(t, node, func() error { // as the runtime does with the namespace
				l, err := netlink.LinkByName(row.host)
				if err != nil {
					return err
				}
				return netlink.LinkDel(l)
			})
			if diff := cmp.Diff(before, []string{ipRule(t, node), ipRoute(t, node), strings.Join(linkNames(t, node), " ")}); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
			if left := recordsLeft(t); left != nil {
				t.Errorf("records left: %q", left)
			}
			if _, dels := s.requests(); len(dels) != 1 {
				t.Errorf("the daemon was called %d times", len(dels))
			}
		})
	}
}

// TestPlugin_LateDel: DEL of an old sandbox after ADD of a new one, either of the same pod, with
// the same branch ENI or another, or of another pod that got the VLAN ID.
func TestPlugin_LateDel(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	for name, row := range map[string]struct{ pod, mac, address string }{
		"same branch ENI":    {"web-0", "02:00:00:00:00:03", "10.0.0.90"},
		"another branch ENI": {"web-0", "02:00:00:00:00:04", "10.0.0.91"},
		"another pod":        {"web-9", "02:00:00:00:00:04", "10.0.0.91"},
	} {
		for _, mode := range []string{"strict", "standard"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				node := netns.New(t)
				parent := trunk(t, node)
				(&server{
					add: func(r *cniwire.AddRequest) *cniwire.AddReply {
						if r.ContainerID == "old" {
							return branchReply(parent, 3, "02:00:00:00:00:03", "10.0.0.90")
						}
						return branchReply(parent, 3, row.mac, row.address)
					},
					del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
				}).serve(t)
				old, next := newSandbox(t, node, "old", "web-0", netns.New(t).Path), newSandbox(t, node, "new", row.pod, netns.New(t).Path)
				results := map[*sandbox]string{}
				for _, box := range []*sandbox{old, next} {
					code, out := box.run(t, "ADD", inMode(box.stdin(), mode))
					if code != 0 {
						t.Fatalf("ADD %s: %d %s", box.id, code, out)
					}
					results[box] = out
				}
				replaced := "Replaced vlan.eth.3 with the MAC 02:00:00:00:00:03 of another branch ENI"
				if strings.Contains(next.logged(t), replaced) != (row.mac != "02:00:00:00:00:03") {
					t.Errorf("log:\n%s", next.logged(t))
				}
				for range 2 {
					old.expect(t, "DEL", inMode(old.stdin(`,"prevResult":`+results[old]), mode), 0, "")
				}
				next.expect(t, "CHECK", inMode(next.stdin(`,"prevResult":`+results[next]), mode), 0, "")
				next.expect(t, "DEL", inMode(next.stdin(`,"prevResult":`+results[next]), mode), 0, "")
				if diff := cmp.Diff("", ipRule(t, node)); diff != "" {
					t.Errorf("rules left:\n%s", diff)
				}
				if slices.Contains(linkNames(t, node), netnames.VLANDevice(3)) {
					t.Error("the device is left")
				}
			})
		}
	}
}

// ruleOf returns the last of the rules that ipRule printed.
func ruleOf(t *testing.T, text string) *netlink.Rule {
	t.Helper()
	lines := strings.Fields(strings.TrimSpace(text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]))
	r := netlink.NewRule()
	var err error
	if r.Priority, err = strconv.Atoi(strings.TrimSuffix(lines[0], ":")); err != nil {
		t.Fatal(err)
	}
	if r.Table, err = strconv.Atoi(lines[4]); err != nil {
		t.Fatal(err)
	}
	if lines[1] == "iif" {
		r.IifName = lines[2]
		return r
	}
	if r.Src, err = netlink.ParseIPNet(lines[2] + "/32"); err != nil {
		t.Fatal(err)
	}
	return r
}
