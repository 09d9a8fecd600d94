package apply

import (
	"fmt"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// deleteTries bounds the deletion of equal rules. A VPC has at most 50 CIDRs, and
// old releases made one rule for each.
const deleteTries = 1000

// Teardown removes a pod's rules and route on the host. What is missing is fine.
// RouteErr is the failure to delete the route: the route goes with the link anyway,
// so callers only report it.
func Teardown(t rules.Teardown) (routeErr, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	defer host.Close()

	var b rtnl.Batch
	b.RuleDel(rule(t.ToPod))
	b.Tolerate(unix.ENOENT)
	b.RouteDel(rtnl.Route{Dst: t.Route.Dst, Scope: rtnl.OnLink})
	b.Tolerate(unix.ESRCH)
	for _, r := range t.FromPod {
		b.RuleDel(rule(r))
		b.Tolerate(unix.ENOENT)
	}
	err = host.Do(&b)
	if e := b.Errno(0); e != 0 && e != unix.ENOENT {
		return nil, failed(StepToPodRule, e)
	}
	for i := range t.FromPod {
		if e := b.Errno(2 + i); e != 0 && e != unix.ENOENT {
			return nil, failed(StepFromPodRule, e)
		}
	}
	if e := b.Errno(1); e != 0 && e != unix.ESRCH {
		routeErr, err = failed(StepHostRoute, e), nil
	}
	if err != nil {
		return nil, failed(StepToPodRule, err)
	}
	for i, r := range t.FromPod {
		if b.Errno(2+i) == 0 {
			if err := deleteAll(host, &rtnl.Batch{}, r); err != nil {
				return routeErr, failed(StepFromPodRule, err)
			}
		}
	}
	return routeErr, nil
}

// deleteAll deletes a rule until there is none left.
func deleteAll(c *rtnl.Conn, b *rtnl.Batch, r rules.Rule) error {
	for range deleteTries {
		b.Reset()
		b.RuleDel(rule(r))
		b.Tolerate(unix.ENOENT)
		if err := c.Do(b); err != nil {
			return err
		}
		if b.Errno(0) == unix.ENOENT {
			return nil
		}
	}
	return fmt.Errorf("delete rule %v: still there after %d deletions", r, deleteTries)
}
