package apply_test

import (
	"net/netip"
	"testing"

	"cnictl/daemon/api/netnames"
	"cnictl/plugin/podnet/apply"
	podrules "cnictl/plugin/podnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestTeardown_FailedStep: the kernel refuses a rule that mixes families, and the error
// names the step of that rule.
func TestTeardown_FailedStep(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	address, other := netip.MustParseAddr("10.0.0.21"), netip.MustParsePrefix("fd00::1/128")
	for step, change := range map[apply.Step]func(*podrules.Teardown){
		apply.StepToPodRule:   func(d *podrules.Teardown) { d.ToPod.From = other },
		apply.StepBranchRules: func(d *podrules.Teardown) { d.All[0].From, d.All[0].To = d.Route.Dst, other },
		apply.StepFromPodRule: func(d *podrules.Teardown) { d.All[1].To = other },
	} {
		t.Run(step.String(), func(t *testing.T) {
			d, err := podrules.NewBranchTeardown(address, 3)
			if err != nil {
				t.Fatal(err)
			}
			if d.All[0].Priority != netnames.RuleBranch {
				t.Fatalf("rules %v", d.All)
			}
			d.VLANLink = "" // not every kernel has its driver
			change(&d)
			err = netns.New(t).Do(func() error {
				_, err := apply.Teardown(d)
				return err
			})
			if got := apply.FailedStep(err); got != step {
				t.Errorf("failed at %q: %v", got, err)
			}
		})
	}
}
