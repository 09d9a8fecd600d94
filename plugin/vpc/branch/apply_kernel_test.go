package branch_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/netstate"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestSetup_LeavesNothing makes each step of a branch pod's setup fail and expects the host
// to be as before.
func TestSetup_LeavesNothing(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	other := netip.MustParsePrefix("fd00::1/128") // of the other family, which the kernel refuses in a rule
	const strict, standard = true, false
	for _, row := range []struct {
		step   apply.Step
		strict bool
		change func(*rules.Pod)
	}{
		{apply.StepCreatePair, strict, func(p *rules.Pod) { p.Interfaces[0].Pair.Host.Name = "a/b" }},
		{apply.StepBranchStaleRules, strict, func(p *rules.Pod) { p.VLAN.Stale[0].From, p.VLAN.Stale[0].To = p.Interfaces[0].Address, other }},
		{apply.StepOldVLAN, strict, func(p *rules.Pod) { p.VLAN.Name = "lo" }}, // which cannot be deleted
		{apply.StepCreateVLAN, strict, func(p *rules.Pod) { p.VLAN.Parent = 4711 }},
		{apply.StepVLANAcceptRA, strict, func(p *rules.Pod) { p.VLAN.Sysctls[0].Value = "x" }},
		{apply.StepVLANRedirects, strict, func(p *rules.Pod) { p.VLAN.Sysctls[1].Value = "x" }},
		{apply.StepVLANUp, strict, nil}, // the trunk is down
		{apply.StepVLANGateway, strict, func(p *rules.Pod) { p.VLAN.Gateway.Dst = netip.MustParsePrefix("10.0.0.1/24") }},
		{apply.StepVLANDefault, strict, func(p *rules.Pod) { p.VLAN.Default.Gateway = netip.MustParseAddr("10.9.9.9") }},
		{apply.StepGateway, strict, func(p *rules.Pod) { p.Interfaces[0].Gateway.Dst = netip.MustParsePrefix("169.254.1.1/24") }},
		{apply.StepBranchRoute, strict, func(p *rules.Pod) { p.Interfaces[0].ToPod.Dst = netip.MustParsePrefix("10.0.0.90/24") }},
		{apply.StepFromVLANRule, strict, func(p *rules.Pod) {
			p.Interfaces[0].Rules[0].From, p.Interfaces[0].Rules[0].To = p.Interfaces[0].Address, other
		}},
		{apply.StepFromVethRule, strict, func(p *rules.Pod) {
			p.Interfaces[0].Rules[1].From, p.Interfaces[0].Rules[1].To = p.Interfaces[0].Address, other
		}},
		{apply.StepVLANDefault, standard, func(p *rules.Pod) { p.VLAN.Default.Gateway = netip.MustParseAddr("10.9.9.9") }},
		{apply.StepDefaultRoute, standard, func(p *rules.Pod) { p.Interfaces[0].Default.Gateway = netip.MustParseAddr("10.9.9.9") }},
		{apply.StepHostRoute, standard, func(p *rules.Pod) { p.Interfaces[0].ToPod.Dst = netip.MustParsePrefix("10.0.0.90/24") }},
		{apply.StepToPodRule, standard, func(p *rules.Pod) { p.Interfaces[0].Rules[0].From = other }},
		{apply.StepFromPodRule, standard, func(p *rules.Pod) { p.Interfaces[0].Rules[1].To = other }},
	} {
		step := row.step
		t.Run(fmt.Sprintf("%v strict=%t", step, row.strict), func(t *testing.T) {
			node, pod := netns.New(t), netns.New(t)
			parent := trunk(t, node)
			look := func() []string {
				return []string{ipRule(t, node), ipRoute(t, node), strings.Join(routesOf(t, node, 103), " "), strings.Join(linkNames(t, node), " "), strings.Join(linkNames(t, pod), " ")}
			}
			before := look()
			host := map[bool]string{strict: "vlan0d7763386da", standard: "eni0d7763386da"}[row.strict]
			p, err := rules.NewBranchPod(rules.NewPair("c", host, "eth0", 9001), netip.MustParseAddr("10.0.0.90"), rules.BranchENI{
				VLAN: 3, MAC: netstate.MAC{2, 0, 0, 0, 0, 3}, Gateway: netip.MustParseAddr("10.0.0.1"), Trunk: parent, Strict: row.strict,
			})
			if err != nil {
				t.Fatal(err)
			}
			if row.change == nil {
				do(t, node, func() error {
					l, err := netlink.LinkByIndex(int(parent))
					if err != nil {
						return err
					}
					return netlink.LinkSetDown(l)
				})
			} else {
				row.change(&p)
			}
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
				// As the plugin does: the pair first gets the name of an ordinary pod's.
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
