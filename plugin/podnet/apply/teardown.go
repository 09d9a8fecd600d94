package apply

import (
	"errors"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// deleteTries limits the deletion of equal rules. A VPC has at most 50 CIDRs, and old
// releases added one rule for each.
const deleteTries = 1000

// Teardown removes a pod's rules and route on the host, as far as they exist. RouteErr is
// the failure to delete the route: the route goes with the link anyway, so callers only
// report it.
func Teardown(t rules.Teardown) (routeErr, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	defer host.Close()

	if t.VLANLink != "" {
		var b rtnl.Batch
		b.LinkDelName(t.VLANLink)
		b.Tolerate(unix.ENODEV)
		if err := host.Do(&b); err != nil {
			return nil, failed(StepVLANLink, err)
		}
	}
	var b rtnl.Batch
	b.RuleDel(t.ToPod)
	b.Tolerate(unix.ENOENT)
	for _, r := range t.All {
		b.RuleDel(r)
		b.Tolerate(unix.ENOENT)
	}
	routeAt := b.Len()
	b.RouteDel(t.Route)
	b.Tolerate(unix.ESRCH)
	crashpoint.Here(crashpoint.PluginBeforeTeardown)
	if err := host.Do(&b); err != nil {
		var refused *rtnl.Error
		if !errors.As(err, &refused) || refused.Index != routeAt {
			return nil, failed(teardownStep(t, refused), err)
		}
		routeErr = failed(StepHostRoute, err) // the last message: nothing else failed
	}
	crashpoint.Here(crashpoint.PluginAfterTeardown)
	for i, r := range t.All {
		if b.Errno(1+i) == 0 { // one existed, so there may be more
			if err := deleteAll(host, &rtnl.Batch{}, r); err != nil {
				return routeErr, failed(stepOf(r), err)
			}
		}
	}
	return routeErr, nil
}

func teardownStep(t rules.Teardown, refused *rtnl.Error) Step {
	if refused == nil {
		return StepOpen
	}
	if refused.Index == 0 {
		return StepToPodRule
	}
	return stepOf(t.All[refused.Index-1])
}

func stepOf(r netstate.Rule) Step {
	if r.Priority == netnames.RuleBranch {
		return StepBranchRules
	}
	return StepFromPodRule
}

// deleteAll deletes a rule until none is left.
func deleteAll(c *rtnl.Conn, b *rtnl.Batch, r netstate.Rule) error {
	for range deleteTries {
		b.Reset()
		b.RuleDel(r)
		b.Tolerate(unix.ENOENT)
		if err := c.Do(b); err != nil {
			return err
		}
		if b.Errno(0) == unix.ENOENT {
			return nil
		}
	}
	return errors.New("rules keep reappearing: " + r.String())
}
