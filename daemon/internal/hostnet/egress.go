package hostnet

import (
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
	"cnictl/daemon/rtnl"
)

// leaveGuard returns the wanted rule set, changed to keep a guard that living pods need.
func leaveGuard(now, want iptables.Ruleset, ipv6 bool) (iptables.Ruleset, error) {
	if !rules.Guarded(now) || rules.Guarded(want) {
		return want, nil
	}
	living, err := egressPods(ipv6)
	if err != nil || !living {
		return want, err
	}
	return rules.LeavingGuard(want), nil
}

// egressPods reports whether the node has living pods with an address of the cluster's
// other family: it has a route to each such address.
func egressPods(ipv6 bool) (living bool, _ error) {
	err := with(func(c *rtnl.Conn) error {
		routes, err := c.Routes(familyBy(ipv6), netnames.MainTable)
		for _, r := range routes {
			living = living || r.Dst.IsSingleIP() && !r.Gateway.IsValid() && rules.IsEgressAddress(r.Dst.Addr())
		}
		return err
	})
	return living, err
}
