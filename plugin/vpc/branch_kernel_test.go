package vpc_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

func branchReply(trunk, vlan int32, mac, address string) *cniwire.AddReply {
	return &cniwire.AddReply{Success: true, PodVLANID: vlan, PodENIMAC: mac, PodENISubnetGW: "10.0.0.1", ParentIfIndex: trunk,
		Allocations: []cniwire.Allocation{{IPv4: address, Device: -1}}}
}

func inMode(stdin, mode string) string {
	return strings.Replace(stdin, `"podSGEnforcingMode":"strict"`, `"podSGEnforcingMode":"`+mode+`"`, 1)
}

// TestBinary_BranchFails: if the device cannot be created, nothing is left.
func TestBinary_BranchFails(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	for _, mode := range []string{"strict", "standard"} {
		t.Run(mode, func(t *testing.T) {
			s := (&server{
				add: func(*cniwire.AddRequest) *cniwire.AddReply {
					return branchReply(4711, 3, "02:00:00:00:00:03", "10.0.0.90")
				},
				del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
			}).serve(t)
			node, pod := netns.New(t), netns.New(t)
			box := newSandbox(t, node, "abc001", "web-0", pod.Path)
			code, out, _, err := box.run(t.Context(), "ADD", inMode(box.stdin(), mode))
			const text = "add command: failed to setup network: SetupBranchENIPodNetwork: failed to setup vlan: failed to add vlan link vlan.eth.3: "
			if err != nil || code != 1 || !strings.Contains(out, text) {
				t.Errorf("ADD: %d %s %v", code, out, err)
			}
			if _, dels := s.requests(); len(dels) != 1 {
				t.Errorf("given back by %+v", dels)
			}
			if diff := cmp.Diff([]string{"lo"}, linkNames(t, node)); diff != "" {
				t.Errorf("links left:\n%s", diff)
			}
			if diff := cmp.Diff(emptyRules, ipRule(t, node)); diff != "" {
				t.Errorf("rules left:\n%s", diff)
			}
			if left := recordsLeft(t); left != nil {
				t.Errorf("records left: %q", left)
			}
		})
	}
}
