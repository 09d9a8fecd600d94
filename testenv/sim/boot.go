package sim

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// This file simulates the start of a daemon, in the order of daemon/ipamd.

// firstView is the state that a start reads.
type firstView struct {
	interfaces []resync.Interface
	attached   []resync.ENI
	orphans    []resync.ENI
	subnets    []resync.Subnet
	links      []string
	routes     []resync.PodRoute
}

// boot reads the node's state, fills a keeper and serves.
func (p *process) boot() error {
	ctx, c := within{p.scope, true}, &calls{p}
	v, err := p.firstLook(ctx, c)
	if err != nil {
		return err
	}
	n := p.node
	settings := n.settings()
	k := keeper.New(keeper.Options{
		Settings: settings, Limits: n.spec.Limits, VPCCIDRs: n.w.Scenario.VPC, Outside: outside{p}, Jitter: n.jitter,
		Now: n.w.now(),
	})
	k.SetMaxPods(n.w.now(), n.spec.MaxPods, "table")
	entries, damaged := n.disk.load()
	entries, routes := n.w.Scenario.Mistake.forget(entries, v.routes)
	restored, err := keeper.Begin(ctx, c, k, keeper.Start{
		Attached: v.attached, Orphans: v.orphans, Subnets: v.subnets, Interfaces: v.interfaces,
		Entries: entries, Damaged: damaged, Restart: n.disk.there, Links: v.links, Routes: routes,
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	n.w.tracef("%s: restored %d allocations, %d recovered, %d stale, %d unplaced", n.name,
		restored.Allocations, restored.Recovered, len(restored.Stale), len(restored.Unplaced))
	p.keeper, p.serving = k, true
	n.w.tracef("%s: daemon serves", n.name)
	n.serves()
	p.post(keeper.NodeRead{MaxPods: n.spec.MaxPods, Source: "node", Unschedulable: n.cordoned})
	return nil
}

// firstLook reads the metadata service, EC2 and the kernel. The calls to EC2 run in parallel.
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
				v.subnets = nil // growth works without subnets
			}
			links, err := c.PodLinks(ctx)
			if err != nil {
				return err
			}
			v.links = slices.Sorted(maps.Keys(links))
			v.routes, err = c.PodRoutes(ctx)
			return err
		},
	)
	if orphansErr != nil {
		p.node.w.tracef("%s: could not list orphans: %v", p.node.name, orphansErr)
	}
	return v, err
}

// load reads the file as the shell does: it keeps the readable part of a damaged file.
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

// SetUpFound sets ENIs up one after another.
func (c *calls) SetUpFound(ctx context.Context, enis []ipam.ENI) (failed []error) {
	for _, e := range enis {
		failed = append(failed, c.setUp(ctx, e, startLinkLimit))
	}
	return failed
}

// TableFor serves ENIs of further network cards, which no node here has.
func (c *calls) TableFor(context.Context, int, int, netip.Addr, int) (int, error) {
	return 0, errKernel
}

// DropENIRules removes the rules of ENIs that are no longer attached.
func (c *calls) DropENIRules(ctx context.Context, attached []netip.Addr) ([]netip.Addr, error) {
	return local(ctx, c, "drop rules of ENIs", func() []netip.Addr {
		maps.DeleteFunc(c.p.node.kernel.tables, func(a netip.Addr, _ int) bool { return !slices.Contains(attached, a) })
		return nil
	})
}

// Report records the steps of a start that failed.
func (c *calls) Report(s keeper.StartStep) {
	if s.Err != nil {
		c.p.node.w.tracef("%s: start: %+v", c.p.node.name, s)
	}
}
