package ipamd

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Allocations that were rebuilt from the kernel have no sandbox that a DEL could
// name, and the DEL of one read from the checkpoint may have come while no daemon
// ran: the kernel removes the pod's link a moment after it, and a start in between
// still sees the link. Both end with the host link of their pod.

const (
	recoveredPeriod = 30 * time.Second
	// linkEndDelay is when to look after a DEL: the runtime removes the network
	// namespace, and the link with it, a moment later.
	linkEndDelay = time.Second
)

func (d *daemon) watchRecovered(ctx context.Context) {
	every(ctx, constant(recoveredPeriod), func(context.Context) { d.owner.exec.readLinks(0) })
}

// readLinks reports the host's links after a delay.
func (x *executor) readLinks(after time.Duration) {
	x.spawn(func(ctx context.Context) {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		links, err := x.host.PodLinks(ctx)
		if err != nil {
			x.log.Warn("host links not listed", slog.Any(logline.KeyError, err))
			return
		}
		x.post(linksRead{links})
	})
}

type linksRead struct{ links map[string]int }

func (m linksRead) handle(o *owner, _ time.Time) {
	hashes := resync.Hashes(slices.Collect(maps.Keys(m.links)))
	var gone []ipam.Assignment
	for a := range o.book.Assignments() {
		_, linked := m.links[a.Sandbox.ContainerID]
		switch {
		case a.Sandbox.Network == resync.RecoveredNetwork && !linked,
			o.restored[a.Sandbox] && !hashes[netnames.Hash(a.Pod.Namespace, a.Pod.Name, 0)]:
			gone = append(gone, a)
		}
	}
	if len(gone) > 0 {
		o.exec.dropRecovered(gone)
	}
}

// dropRecovered removes the rules of pods that are gone and reports them: before an
// address is free, nothing of its last pod may be left.
func (x *executor) dropRecovered(gone []ipam.Assignment) {
	x.spawn(func(ctx context.Context) {
		var done recoveredGone
		for _, a := range gone {
			if err := x.host.DropPod(ctx, a.Address); err != nil {
				x.log.Warn("rules of an ended pod not removed, will be tried again", slog.String(logline.KeyIP, a.Address.String()), slog.Any(logline.KeyError, err))
				continue
			}
			done.ended = append(done.ended, a)
		}
		x.post(done)
	})
}

type recoveredGone struct{ ended []ipam.Assignment }

func (m recoveredGone) handle(o *owner, now time.Time) {
	for _, a := range m.ended {
		if !o.holds(a.Sandbox) {
			continue
		}
		o.apply(now, ipam.Unassign{Sandbox: a.Sandbox})
		o.ledger.remove(a.Sandbox)
		delete(o.restored, a.Sandbox)
		o.changed()
		o.log.Info("allocation ended with its link",
			slog.String(logline.KeyLink, a.Sandbox.ContainerID), slog.String(logline.KeyIP, a.Address.String()))
	}
}
