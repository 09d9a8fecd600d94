package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/keeper"
)

// restore fills the keeper's book and brings the kernel's pod rules into line with it.
func (s *starter) restore(ctx context.Context, k *keeper.Keeper, files *checkpoints, interfaces []imds.Interface) error {
	read, err := files.load()
	if err != nil {
		return err
	}
	for _, p := range read.problems {
		s.recorder.history.note(s.now(), "checkpoint", cause.CheckpointUnreadable, p.err.Error())
		s.log.Error("checkpoint not usable, allocations are rebuilt from the kernel",
			slog.String(logline.KeyPath, p.keptAside), slog.Any(logline.KeyError, p.err))
	}
	restored, err := keeper.Begin(ctx, s.exec, k, keeper.Start{
		Attached: s.view.attached, Orphans: s.view.orphans, Subnets: s.view.subnets, Interfaces: interfaces,
		Entries: read.entries, Damaged: len(read.problems) > 0, Restart: s.restart, Links: slices.Sorted(maps.Keys(s.view.links)), Routes: s.view.routes,
	})
	var missing *keeper.PrimaryMissingError
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf(textNoENIs+": %w", err)
	case err != nil:
		return err
	}
	for _, e := range restored.Stale {
		//nolint:sloglint // upstream's line, which people search for
		s.log.Warn(textStale+e.ContainerID+")", slog.String(logline.KeyIP, e.Address().String()),
			slog.String(logline.KeyPod, e.PodName), slog.String(logline.KeyNamespace, e.PodNamespace))
	}
	for _, a := range restored.Unplaced {
		s.log.Warn("allocation kept although its address is not on a known ENI; releases are suspended",
			slog.String(logline.KeyIP, a.Address.String()), slog.String(logline.KeyPod, a.Pod.Name))
	}
	s.log.Info("allocations restored", slog.Int(logline.KeyCount, restored.Allocations),
		slog.Int(logline.KeyRecovered, restored.Recovered), slog.Int(logline.KeyStale, len(restored.Stale)))
	return nil
}

// Report logs a step.
func (x *executor) Report(s keeper.StartStep) {
	eni, ip, why := slog.String(logline.KeyENI, string(s.ENI)), slog.String(logline.KeyIP, s.Address.String()), slog.Any(logline.KeyError, s.Err)
	switch s.Kind {
	case keeper.Unlisted:
		x.log.Warn("ENI is in instance metadata but EC2 does not list it as attached", eni, slog.Int(logline.KeyDevice, s.Device))
	case keeper.TableRead:
		x.log.Warn("could not look up the route table of an ENI", eni, why)
	case keeper.SetUpLate:
		x.log.Warn("ENI not set up at start, will be retried", eni, why)
	case keeper.StaleDropped, keeper.HalfDropped:
		reason := slog.String(logline.KeyReason, map[keeper.StartKind]string{
			keeper.StaleDropped: "a stale allocation", keeper.HalfDropped: "an interrupted ADD",
		}[s.Kind])
		if s.Err != nil {
			x.log.Warn("leftover rules not removed", reason, ip, why)
			return
		}
		x.log.Info("leftover rules removed", reason, ip)
	case keeper.PodTableFixed:
		if s.Err != nil {
			x.log.Warn("rules of a running pod not restored", ip, why)
			return
		}
		x.log.Warn("rules of a running pod restored", ip, slog.Int(logline.KeyRouteTable, s.Table))
	case keeper.ENIRuleDropped:
		if s.Err != nil {
			x.log.Warn("rules of missing ENIs not removed", why)
			return
		}
		x.log.Info("rule of a missing ENI removed", ip)
	}
}
