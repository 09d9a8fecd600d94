package hostnet

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/daemon/resync"
	"cnictl/daemon/rtnl"
)

// PodRoutes lists the pod addresses that have a route or rule, sorted, IPv4 before IPv6. It
// leaves out addresses of living branch pods, which come from no pool.
func (h *Host) PodRoutes(_ context.Context) ([]resync.PodRoute, error) {
	found := podRoutes{}
	err := with(func(c *rtnl.Conn) error {
		links, err := c.Links()
		if err != nil {
			return err
		}
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			if err := found.read(c, family, podLinkNames(links)); err != nil {
				return err
			}
		}
		found.leaveOut(branchTables(links))
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]resync.PodRoute, 0, len(found))
	for _, a := range slices.SortedFunc(maps.Keys(found), netip.Addr.Compare) {
		out = append(out, *found[a])
	}
	return out, nil
}

// podRoutes are the pod addresses found.
type podRoutes map[netip.Addr]*resync.PodRoute

func (f podRoutes) of(p netip.Prefix) *resync.PodRoute {
	r := f[p.Addr()]
	if r == nil {
		r = &resync.PodRoute{Address: p.Addr(), Table: netnames.MainTable}
		f[p.Addr()] = r
	}
	return r
}

// read adds the kernel's routes and rules of one family. names are pods' links by index.
func (f podRoutes) read(c *rtnl.Conn, family uint8, names map[int32]string) error {
	routes, err := c.Routes(family, netnames.MainTable)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if name := names[r.Link]; name != "" && r.Dst.IsSingleIP() && !r.Gateway.IsValid() && r.Scope == netstate.Direct(r.Dst, 0, 0).Scope {
			f.of(r.Dst).HostLink = name
		}
	}
	list, err := ipRules(c, family)
	if err != nil {
		return err
	}
	for _, r := range list {
		switch {
		case r.Restricted():
		case r.Priority == netnames.RuleToPod && r.To.IsValid() && r.To.IsSingleIP() && r.Table == netnames.MainTable:
			f.of(r.To).ToRule = true
		case r.Priority == netnames.RuleFromPod && r.From.IsValid() && r.From.IsSingleIP():
			f.of(r.From).Table = r.Table
		}
	}
	return nil
}

func (f podRoutes) leaveOut(tables map[int]bool) {
	maps.DeleteFunc(f, func(_ netip.Addr, r *resync.PodRoute) bool { return tables[r.Table] })
}

// branchTables returns the route tables of branch ENIs that have a device.
func branchTables(links []netstate.Link) map[int]bool {
	out := map[int]bool{}
	for _, l := range links {
		vlan, _ := netnames.VLANOfDevice(l.Name)
		if table, ok := netnames.BranchTable(vlan); ok {
			out[table] = true
		}
	}
	return out
}

// podLinkNames returns the links that look like a pod's: a veth whose name ends with the
// hash of a pod's name.
func podLinkNames(links []netstate.Link) map[int32]string {
	out := map[int32]string{}
	for _, l := range links {
		if l.Kind == "veth" && endsWithHash(l.Name) {
			out[l.Index] = l.Name
		}
	}
	return out
}

func endsWithHash(name string) bool {
	hash := len(netnames.Hash("", "", 0))
	prefix := len(name) - hash
	return prefix >= 0 && prefix <= netnames.MaxVethPrefix &&
		strings.Trim(name[prefix:], "0123456789abcdef") == ""
}

// FixPodTable makes a living pod's policy rules lead to its ENI's table: it adds missing
// rules before it removes wrong ones.
func (h *Host) FixPodTable(_ context.Context, addr netip.Addr, table int) error {
	return h.podRules(addr, rules.PodRules(addr, table), nil)
}

// DropPod removes the policy rules and the route of a pod's address. It succeeds if there
// are none.
func (h *Host) DropPod(_ context.Context, addr netip.Addr) error {
	return h.podRules(addr, nil, func(c *rtnl.Conn) error { return dropPodRoute(c, addr) })
}

// dropPodRoute is not a closure: inlined elsewhere, it would leave the names of its crash
// points in a release.
func dropPodRoute(c *rtnl.Conn, addr netip.Addr) error {
	host := netip.PrefixFrom(addr, addr.BitLen())
	routes, err := c.Routes(rtnl.Family(addr), netnames.MainTable)
	if err != nil {
		return err
	}
	var b rtnl.Batch
	for _, r := range routes {
		if r.Dst == host && !r.Gateway.IsValid() && r.Scope == netstate.Direct(host, 0, 0).Scope {
			b.RouteDel(r)
			b.Tolerate(unix.ESRCH)
		}
	}
	crashpoint.Here(crashpoint.BeforePodRoute)
	err = c.Do(&b)
	crashpoint.Here(crashpoint.AfterPodRoute)
	return err
}

// podRules brings an address's rules to the wanted state and then calls more, unless nil.
func (h *Host) podRules(addr netip.Addr, want []netstate.Rule, more func(*rtnl.Conn) error) error {
	err := with(func(c *rtnl.Conn) error {
		current, err := ipRules(c, rtnl.Family(addr))
		if err != nil {
			return err
		}
		changes := rules.DiffPodRules(current, addr, want)
		crashpoint.Here(crashpoint.BeforePodRules)
		if err := do(c, changes); err != nil {
			return err
		}
		crashpoint.Here(crashpoint.AfterPodRules)
		h.logRules(changes)
		if more == nil {
			return nil
		}
		return more(c)
	})
	if err != nil {
		return fmt.Errorf("set rules of pod address %s: %w", addr, err)
	}
	return nil
}
