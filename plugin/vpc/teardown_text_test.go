package vpc_test

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/vpc"
)

// TestTeardownText: a DEL that cannot tear down fails with upstream's text.
func TestTeardownText(t *testing.T) {
	t.Parallel()
	const (
		pool   = "TeardownPodNetwork: unable to teardown IP based container routes and rules: "
		branch = "TeardownBranchENIPodNetwork: "
		ip     = branch + "unable to teardown IP based container routes and rules: "
	)
	at := func(step apply.Step) error { return &apply.StepError{Step: step, Err: unix.EPERM} }
	v4, v6 := netip.MustParseAddr("10.0.0.21"), netip.MustParseAddr("2001:db8::7")
	for _, row := range []struct {
		got, want string
	}{
		{vpc.TeardownText(at(apply.StepToPodRule), v4, 2), pool + "failed to delete toContainer rule, containerAddr=10.0.0.21/32, rtTable=main: operation not permitted"},
		{vpc.TeardownText(at(apply.StepFromPodRule), v4, 2), pool + "failed to delete fromContainer rule, containerAddr=10.0.0.21/32, rtTable=2: operation not permitted"},
		{vpc.TeardownText(at(apply.StepFromPodRule), v6, 10102), pool + "failed to delete fromContainer rule, containerAddr=2001:db8::7/128, rtTable=10102: operation not permitted"},
		{vpc.TeardownText(at(apply.StepOpen), v4, 2), pool + "operation not permitted"},
		{vpc.TeardownText(errors.New("lay out teardown: no address"), v4, 2), pool + "lay out teardown: no address"},
		{vpc.BranchTeardownText(at(apply.StepVLANLink), v4, 3), branch + "failed to teardown vlan: failed to delete vlan link vlan.eth.3: operation not permitted"},
		{vpc.BranchTeardownText(at(apply.StepBranchRules), v4, 3), branch + "unable to teardown IIF based container routes and rules: failed to delete IIF based rules, rtTable=103: operation not permitted"},
		{vpc.BranchTeardownText(at(apply.StepToPodRule), v4, 3), ip + "failed to delete toContainer rule, containerAddr=10.0.0.21/32, rtTable=main: operation not permitted"},
		{vpc.BranchTeardownText(at(apply.StepFromPodRule), v6, 3), ip + "failed to delete fromContainer rule, containerAddr=2001:db8::7/128, rtTable=103: operation not permitted"},
		{vpc.BranchTeardownText(at(apply.StepOpen), v4, 3), ip + "operation not permitted"},
	} {
		if row.got != row.want {
			t.Errorf("got  %s\nwant %s", row.got, row.want)
		}
	}
}
