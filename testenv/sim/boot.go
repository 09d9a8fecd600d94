package sim

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// This file is the start of a daemon, in the order of daemon/ipamd.

// firstView is what a start reads.
type firstView struct {
	interfaces []resync.Interface
	attached   []resync.ENI
	orphans    []resync.ENI
	subnets    []resync.Subnet
	links      []string
	routes     map[netip.Addr]podRoute
}

// boot learns what the node is, fills a keeper and serves.
func (p *process) boot() error {
	ctx, c := within{p.scope, true}, &calls{p}
	v, err := p.firstLook(ctx, c)
	if err != nil {
		return err
	}
	n := p.node
	settings := n.settings()
	k := keeper.New(keeper.Options{
		Settings: settings, Limits: n.spec.Limits, VPCCIDRs: n.w.Scenario.VPC, Outside: outside{p}, Chance: n.chance,
		Now: n.w.now(),
	})
	found, err := k.Found(n.w.now(), v.attached, v.interfaces, v.subnets)
	if err != nil {
		return err
	}
	k.SetMaxPods(n.w.now(), n.spec.MaxPods, "table")
	entries, damaged := n.disk.load()
	entries, routes := n.w.Scenario.Mistake.forget(entries, v.leading())
	usable, late := p.setUpAll(ctx, c, found.SetUp)
	start := keeper.Start{
		Attached: v.attached, Found: found, Usable: usable, Late: late, Orphans: v.orphans, Subnets: v.subnets, Interfaces: v.interfaces,
		Entries: entries, Damaged: damaged, Restart: n.disk.there, Links: v.links, Routes: routes,
	}
	restored, err := k.Restore(n.w.now(), start)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	n.w.tell("%s: restored %d allocations, %d recovered, %d stale, %d unplaced", n.name,
		restored.Allocations, restored.Recovered, len(restored.Stale), len(restored.Unplaced))
	p.clean(ctx, c, k, restored, v)
	p.keeper, p.serving = k, true
	n.w.tell("%s: daemon serves", n.name)
	n.serves()
	p.post(keeper.NodeRead{MaxPods: n.spec.MaxPods, Source: "node", Unschedulable: n.cordoned})
	return nil
}

// firstLook reads the metadata service, EC2 and the kernel. EC2's parts run side by side.
func (p *process) firstLook(ctx context.Context, c *calls) (v firstView, err error) {
	if v.interfaces, err = c.Interfaces(ctx); err != nil {
		return v, err
	}
	var orphansErr, subnetsErr error
	err = c.Both(
		func() (err error) {
			v.attached, err = c.DescribeENIs(ctx, nil)
			return err
		},
		func() error {
			if p.node.disk.there {
				v.orphans, orphansErr = c.DescribeOrphans(ctx)
			}
			if v.subnets, subnetsErr = c.DescribeSubnets(ctx); subnetsErr != nil {
				v.subnets = nil // growth can do without
			}
			if v.links, err = c.PodLinks(ctx); err != nil {
				return err
			}
			v.routes, err = local(ctx, c, "list pod routes", p.node.kernel.copyRoutes)
			return err
		},
	)
	if orphansErr != nil {
		p.node.w.tell("%s: orphans not looked for: %v", p.node.name, orphansErr)
	}
	return v, err
}

func (k *kernel) copyRoutes() map[netip.Addr]podRoute {
	out := make(map[netip.Addr]podRoute, len(k.routes))
	for a, r := range k.routes {
		out[a] = *r
	}
	return out
}

func (v firstView) addresses() []netip.Addr {
	out := make([]netip.Addr, 0, len(v.routes))
	for a := range v.routes {
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// leading lists the routes that lead to a link.
func (v firstView) leading() []resync.PodRoute {
	var out []resync.PodRoute
	for _, a := range v.addresses() {
		if link := v.routes[a].link; link != "" {
			out = append(out, resync.PodRoute{Address: a, HostLink: link})
		}
	}
	return out
}

// load reads the file as the shell does: what a damaged one still shows is kept.
func (d *disk) load() (entries []checkpoint.Entry, damaged bool) {
	if !d.there {
		return nil, false
	}
	entries, err := checkpoint.Decode(d.file)
	if err != nil {
		return checkpoint.Salvage(d.file), true
	}
	return entries, false
}

// setUpAll puts the routes of all ENIs into the kernel; those that fail come late.
func (p *process) setUpAll(ctx context.Context, c *calls, managed []resync.Attached) (usable, late []resync.Attached) {
	for _, m := range managed {
		if !m.ENI.Primary && c.setUp(ctx, m.ENI, startLinkLimit) != nil {
			late = append(late, m)
			continue
		}
		usable = append(usable, m)
	}
	return usable, late
}

// clean brings the kernel's rules into line with the book.
func (p *process) clean(ctx context.Context, c *calls, k *keeper.Keeper, restored keeper.Restored, v firstView) {
	drop := func(a netip.Addr) {
		if err := c.DropPod(ctx, a); err != nil {
			p.node.w.tell("%s: rules of %v not removed: %v", p.node.name, a, err)
		}
	}
	for _, e := range restored.Stale {
		if !k.Holds(e.Address()) {
			drop(e.Address())
		}
	}
	for _, a := range k.Assignments() {
		r, routed := v.routes[a.Address]
		if routed && a.ENI != "" && (!r.toRule || r.table != a.RouteTable) {
			if err := c.rehome(ctx, a.Address, a.RouteTable); err != nil {
				p.node.w.tell("%s: rules of %v not mended: %v", p.node.name, a.Address, err)
			}
		}
	}
	for _, a := range v.addresses() {
		if v.routes[a].link == "" && !k.Holds(a) {
			drop(a)
		}
	}
	p.dropENIRules(ctx, c, v)
}

// dropENIRules removes the rules of ENIs that neither EC2 nor the metadata shows.
func (p *process) dropENIRules(ctx context.Context, c *calls, v firstView) {
	known := map[netip.Addr]bool{}
	for _, e := range v.attached {
		known[e.PrimaryIP] = true
	}
	for _, f := range v.interfaces {
		known[f.IPv4s[0]] = true
	}
	_, err := local(ctx, c, "drop rules of ENIs", func() none {
		maps.DeleteFunc(p.node.kernel.tables, func(a netip.Addr, _ int) bool { return !known[a] })
		return none{}
	})
	if err != nil {
		p.node.w.tell("%s: rules of missing ENIs not removed: %v", p.node.name, err)
	}
}
