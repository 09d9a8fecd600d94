package ipamd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/internal/checkpoint"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// restore fills the book: ENIs from EC2, allocations from the checkpoint and, where
// that is damaged or missing, from the kernel's pod routes.
func restore(ctx context.Context, o *owner, store *checkpoint.Store, host *hostnet.Host, managed []resync.Attached, view outside) error {
	now := o.now()
	for _, ev := range resync.Adopt(o.book.Snapshot(), managed) {
		if _, err := o.book.Apply(now, ev); err != nil {
			return fmt.Errorf("take attached ENIs into the address book: %w", err)
		}
	}
	loaded, err := store.Load()
	if err != nil {
		return fmt.Errorf("load %s: %w", o.node.checkpointPath, err)
	}
	if loaded.Problem != nil {
		o.history.failed(now, "checkpoint", cause.CheckpointUnwritable, loaded.Problem)
		o.log.Error("checkpoint not usable, allocations are rebuilt from the kernel",
			slog.String(logline.KeyPath, loaded.KeptAside), slog.Any(logline.KeyError, loaded.Problem))
	}
	in := resync.RestoreInput{
		Entries: loaded.Entries,
		HashOf:  func(ns, name string) string { return netnames.Hash(ns, name, 0) },
	}
	for name := range view.links {
		in.Links = append(in.Links, name)
	}
	for _, r := range view.routes {
		if r.HostLink != "" {
			in.Routes = append(in.Routes, resync.PodRoute{Address: r.Address, HostLink: r.HostLink})
		}
	}
	result := resync.Restore(in)
	for _, e := range result.Events {
		if _, err := o.book.Apply(now, e); err != nil {
			return fmt.Errorf("restore allocation of %s: %w", e.Address, err)
		}
	}
	o.restored = make(map[ipam.Sandbox]bool)
	for a := range o.book.Assignments() {
		o.ledger.put(a)
		if a.Pod.Namespace != "" && a.Pod.Name != "" {
			o.restored[a.Sandbox] = true
		}
	}
	for _, e := range result.Stale {
		//nolint:sloglint // the original's line, which people search for
		o.log.Warn(textStale+e.ContainerID+")", slog.String(logline.KeyIP, e.Address().String()),
			slog.String(logline.KeyPod, e.PodName), slog.String(logline.KeyNamespace, e.PodNamespace))
		if err := host.DropPod(ctx, e.Address()); err != nil {
			o.log.Warn("rules of a stale allocation not removed", slog.String(logline.KeyIP, e.Address().String()), slog.Any(logline.KeyError, err))
		}
	}
	rehome(ctx, o, host, view)
	dropOrphans(ctx, o, host, view)
	if len(result.Stale) > 0 || result.Recovered > 0 || loaded.Problem != nil {
		o.changed()
	}
	for _, a := range o.book.Snapshot().Unplaced {
		o.log.Warn("allocation kept aside: its address is on no known ENI; nothing is released meanwhile",
			slog.String(logline.KeyIP, a.Address.String()), slog.String(logline.KeyPod, a.Pod.Name))
	}
	o.log.Info("allocations restored", slog.Int(logline.KeyCount, len(result.Events)), slog.Int(logline.KeyRecovered, result.Recovered), slog.Int(logline.KeyStale, len(result.Stale)))
	return nil
}

// rehome mends the rules of living pods whose table in the kernel is not the one
// their ENI has: wiped while no daemon ran, or left by another release.
func rehome(ctx context.Context, o *owner, host *hostnet.Host, view outside) {
	seen := make(map[netip.Addr]hostnet.PodRoute, len(view.routes))
	for _, r := range view.routes {
		seen[r.Address] = r
	}
	for a := range o.book.Assignments() {
		r, routed := seen[a.Address]
		if !routed || a.ENI == "" || (r.ToRule && r.Table == a.RouteTable) {
			continue
		}
		if err := host.RehomePod(ctx, a.Address, a.RouteTable); err != nil {
			o.log.Warn("rules of a living pod not mended", slog.String(logline.KeyIP, a.Address.String()), slog.Any(logline.KeyError, err))
			continue
		}
		o.log.Warn("rules of a living pod mended", slog.String(logline.KeyIP, a.Address.String()), slog.Int(logline.KeyRouteTable, a.RouteTable))
	}
}

// dropOrphans removes rules of addresses that no pod has: an ADD that died half-way
// left them, and they would misroute the next pod that gets the address.
func dropOrphans(ctx context.Context, o *owner, host *hostnet.Host, view outside) {
	for _, r := range view.routes {
		if _, held := o.book.AtAddress(r.Address); held || r.HostLink != "" {
			continue
		}
		if err := host.DropPod(ctx, r.Address); err != nil {
			o.log.Warn("left-over rules not removed", slog.String(logline.KeyIP, r.Address.String()), slog.Any(logline.KeyError, err))
			continue
		}
		o.log.Info("left-over rules removed", slog.String(logline.KeyIP, r.Address.String()))
	}
}
