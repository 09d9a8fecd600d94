package branch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestPlugin_IPv6: an IPv6 pod with a branch ENI, in both modes.
func TestPlugin_IPv6(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	const mac, address = "02:00:00:00:00:03", "2001:db8::90"
	for mode, row := range map[string]struct {
		host, rules string
		table, main []string
	}{
		"strict": {"vlan0d7763386da", "10: iif vlan.eth.3 lookup 103\n10: iif vlan0d7763386da lookup 103\n",
			[]string{"2001:db8::90/128 dev vlan0d7763386da", "::/0 via fe80:ec2::1 dev vlan.eth.3", "fe80:ec2::1/128 dev vlan.eth.3"}, nil},
		"standard": {"eni0d7763386da", "512: to 2001:db8::90 lookup 254\n1536: from 2001:db8::90 lookup 103\n",
			[]string{"::/0 via fe80:ec2::1 dev vlan.eth.3", "fe80:ec2::1/128 dev vlan.eth.3"}, []string{"2001:db8::90/128 dev eni0d7763386da"}},
	} {
		t.Run(mode, func(t *testing.T) {
			node, pod := netns.New(t), netns.New(t)
			parent := trunk(t, node)
			(&server{
				add: func(*cniwire.AddRequest) *cniwire.AddReply {
					return &cniwire.AddReply{Success: true, PodVLANID: 3, PodENIMAC: mac, PodENISubnetGW: "fe80:ec2::1", ParentIfIndex: parent,
						Allocations: []cniwire.Allocation{{IPv6: address, Device: -1}}}
				},
				del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
			}).serve(t)
			box := newSandbox(t, node, "abc001", "web-0", pod.Path)
			result := strings.NewReplacer("10.0.0.90/32", address+"/128", "10.0.0.1", "fe80:ec2::1", `"version": "4"`, `"version": "6"`).
				Replace(resultOf(row.host, "10.0.0.90", "3", pod.Path))
			toPod := func() (out []string) {
				for _, line := range routesIn(t, node, netlink.FAMILY_V6, netnames.MainTable) {
					if strings.HasPrefix(line, address) {
						out = append(out, line)
					}
				}
				return out
			}
			for range 2 { // the second runs over the result of the first
				box.expect(t, "ADD", inMode(box.stdin(), mode), 0, result)
				if diff := cmp.Diff(row.rules, rulesOf(t, node, netlink.FAMILY_V6)); diff != "" {
					t.Errorf("rules:\n%s", diff)
				}
				if diff := cmp.Diff(row.table, routesIn(t, node, netlink.FAMILY_V6, 103)); diff != "" {
					t.Errorf("table 103:\n%s", diff)
				}
				if diff := cmp.Diff(row.main, toPod()); diff != "" {
					t.Errorf("main table:\n%s", diff)
				}
			}
			stdin := inMode(box.stdin(`,"prevResult":`+result), mode)
			box.expect(t, "CHECK", stdin, 0, "")
			for range 2 {
				box.expect(t, "DEL", stdin, 0, "")
				if got := rulesOf(t, node, netlink.FAMILY_V6) + rulesOf(t, node, netlink.FAMILY_V4); got != "" {
					t.Errorf("rules left:\n%s", got)
				}
				if slices.Contains(linkNames(t, node), netnames.VLANDevice(3)) || len(toPod()) > 0 || recordsLeft(t) != nil {
					t.Errorf("left: %q, %q, %q", linkNames(t, node), toPod(), recordsLeft(t))
				}
			}
		})
	}
}
