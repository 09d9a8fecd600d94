package ipamd

import (
	"context"
	"log/slog"
	"net/netip"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// restore fills the keeper's book and brings the kernel's pod rules into line with it.
func (s *starter) restore(ctx context.Context, k *keeper.Keeper, files *checkpoints, found resync.ReconcileResult, interfaces []imds.Interface) error {
	read, err := files.load()
	if err != nil {
		return err
	}
	now := s.now()
	for _, p := range read.problems {
		s.recorder.history.note(now, "checkpoint", cause.CheckpointUnwritable, p.err.Error())
		s.log.Error("checkpoint not usable, allocations are rebuilt from the kernel",
			slog.String(logline.KeyPath, p.keptAside), slog.Any(logline.KeyError, p.err))
	}
	s.findTables(ctx, found.SetUp)
	usable, late := s.exec.setUpAll(ctx, found.SetUp)
	restored, err := k.Restore(now, keeper.Start{
		Attached: s.view.attached, Found: found, Usable: usable, Late: late, Orphans: s.view.orphans, Subnets: s.view.subnets,
		Entries: read.entries, Damaged: len(read.problems) > 0, Restart: s.restart,
		Interfaces: interfaces, Links: linkNames(s.view.links), Routes: podRoutes(s.view.routes),
	})
	if err != nil {
		return err
	}
	var stale []netip.Addr
	for _, e := range restored.Stale {
		//nolint:sloglint // upstream's line, which people search for
		s.log.Warn(textStale+e.ContainerID+")", slog.String(logline.KeyIP, e.Address().String()),
			slog.String(logline.KeyPod, e.PodName), slog.String(logline.KeyNamespace, e.PodNamespace))
		if !k.Holds(e.Address()) {
			stale = append(stale, e.Address())
		}
	}
	s.exec.drop(ctx, stale, "a stale allocation")
	s.exec.rehome(ctx, k.Assignments(), s.view.routes)
	s.exec.drop(ctx, s.leftover(k), "an ADD that was killed halfway")
	s.dropENIRules(ctx, interfaces)
	for _, a := range restored.Unplaced {
		s.log.Warn("allocation kept aside: its address is on no known ENI; nothing is released meanwhile",
			slog.String(logline.KeyIP, a.Address.String()), slog.String(logline.KeyPod, a.Pod.Name))
	}
	s.log.Info("allocations restored", slog.Int(logline.KeyCount, restored.Allocations),
		slog.Int(logline.KeyRecovered, restored.Recovered), slog.Int(logline.KeyStale, len(restored.Stale)))
	return nil
}

// findTables gives ENIs of further network cards the route tables that the kernel has for
// them: pods of an earlier daemon are routed by these.
func (s *starter) findTables(ctx context.Context, managed []resync.Attached) {
	for i := range managed {
		e := &managed[i].ENI
		if e.Card == 0 || e.Card >= len(s.node.limits.ENIsByCard) {
			continue
		}
		table, err := s.exec.host.TableFor(ctx, e.Card, e.Device, e.PrimaryIP, s.node.limits.ENIsByCard[e.Card])
		if err != nil {
			s.log.Warn("route table of an ENI not looked for", slog.String(logline.KeyENI, string(e.ID)), slog.Any(logline.KeyError, err))
			continue
		}
		e.RouteTable = table
	}
}

// leftover lists addresses that have rules and no pod: they would misroute the next
// pod that gets the address.
func (s *starter) leftover(k *keeper.Keeper) []netip.Addr {
	var out []netip.Addr
	for _, r := range s.view.routes {
		if r.HostLink == "" && !k.Holds(r.Address) {
			out = append(out, r.Address)
		}
	}
	return out
}

// dropENIRules removes the rules of ENIs that a daemon before this one detached:
// neither EC2 nor the metadata shows them.
func (s *starter) dropENIRules(ctx context.Context, interfaces []imds.Interface) {
	var primaries []netip.Addr
	for _, e := range s.view.attached {
		primaries = append(primaries, e.PrimaryIP)
		primaries = append(primaries, e.IPv6s...)
	}
	for _, f := range interfaces {
		primaries = append(primaries, f.IPv4s[:min(1, len(f.IPv4s))]...)
		primaries = append(primaries, f.IPv6s...)
	}
	gone, err := s.exec.host.DropENIRules(ctx, primaries)
	if err != nil {
		s.log.Warn("rules of missing ENIs not removed", slog.Any(logline.KeyError, err))
	}
	for _, a := range gone {
		s.log.Info("rule of a missing ENI removed", slog.String(logline.KeyIP, a.String()))
	}
}
