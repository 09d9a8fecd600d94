package branch_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/netns"
)

// TestSetup_LeavesNothing makes each step of a branch pod fail and compares the host with
// what it was.
func TestSetup_LeavesNothing(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	other := netip.MustParsePrefix("fd00::1/128") // of another family, which the kernel refuses in a rule
	for step, change := range map[apply.Step]func(*rules.Pod){
		apply.StepCreatePair:    func(p *rules.Pod) { p.Interfaces[0].Pair.Host.Name = "a/b" },
		apply.StepCreateVLAN:    func(p *rules.Pod) { p.VLAN.Parent = 4711 },
		apply.StepVLANAcceptRA:  func(p *rules.Pod) { p.VLAN.Sysctls[0].Value = "x" },
		apply.StepVLANRedirects: func(p *rules.Pod) { p.VLAN.Sysctls[1].Value = "x" },
		apply.StepVLANGateway:   func(p *rules.Pod) { p.VLAN.Gateway.Dst = netip.MustParsePrefix("10.0.0.1/24") },
		apply.StepVLANDefault:   func(p *rules.Pod) { p.VLAN.Default.Gateway = netip.MustParseAddr("10.9.9.9") },
		apply.StepGateway:       func(p *rules.Pod) { p.Interfaces[0].Gateway.Dst = netip.MustParsePrefix("169.254.1.1/24") },
		apply.StepBranchRoute:   func(p *rules.Pod) { p.Interfaces[0].ToPod.Dst = netip.MustParsePrefix("10.0.0.90/24") },
		apply.StepFromVLANRule: func(p *rules.Pod) {
			p.Interfaces[0].Rules[0].From, p.Interfaces[0].Rules[0].To = p.Interfaces[0].Address, other
		},
		apply.StepFromVethRule: func(p *rules.Pod) {
			p.Interfaces[0].Rules[1].From, p.Interfaces[0].Rules[1].To = p.Interfaces[0].Address, other
		},
	} {
		t.Run(step.String(), func(t *testing.T) {
			node, pod := netns.New(t), netns.New(t)
			parent := trunk(t, node)
			look := func() []string {
				return []string{ipRule(t, node), ipRoute(t, node), strings.Join(routesOf(t, node, 103), " "), strings.Join(linkNames(t, node), " "), strings.Join(linkNames(t, pod), " ")}
			}
			before := look()
			p, err := rules.NewBranchPod(rules.NewPair("c", "vlan0d7763386da", "eth0", 9001), netip.MustParseAddr("10.0.0.90"), rules.BranchENI{
				VLAN: 3, MAC: rules.MAC{2, 0, 0, 0, 0, 3}, Gateway: netip.MustParseAddr("10.0.0.1"), Trunk: parent, Strict: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			change(&p)
			do(t, node, func() error {
				ns, err := apply.OpenNetns(pod.Path)
				if err != nil {
					return err
				}
				defer ns.Close()
				s, err := apply.Begin(ns, apply.Options{})
				if err != nil {
					return err
				}
				defer s.Close()
				// As the plugin does: the pair has an ordinary pod's name at first.
				s.TryPair(rules.NewPair("c", "eni0d7763386da", "eth0", 9001))
				err = s.Network(p)
				if got := apply.FailedStep(err); got != step {
					t.Errorf("failed at %q: %v", got, err)
				}
				return s.Undo()
			})
			if diff := cmp.Diff(before, look()); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
		})
	}
}
