package ipamd

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// repairs is one pass.
type repairs struct {
	*asserter
	now   time.Time
	wait  time.Duration
	done  []hostnet.Loss
	seen  map[string]bool // things that were restored
	again map[string]bool // objects that others keep removing
}

// assert compares everything once, and again while repairs are being made.
func (p *repairs) assert(ctx context.Context, node bool) error {
	for round := 0; ; round++ {
		p.monitor.BeginView()
		view, err := p.host.View(ctx, p.ipv6)
		if err != nil {
			return err
		}
		p.monitor.Sync(view)
		s, ok := p.state(view)
		if !ok {
			return nil // the daemon is ending
		}
		if round == 0 {
			if err := p.dropDevices(ctx, view, s); err != nil {
				p.fail(err)
			}
			p.enis(ctx, view, s.enis)
			p.nodeState(ctx, view, node)
		}
		again, err := p.pods(ctx, view, s.pods)
		if err != nil {
			p.fail(err)
		}
		if !again || round+1 == assertRounds {
			return nil
		}
	}
}

// followBackend looks whether the node's programs use the other backend of iptables by now.
func (p *repairs) followBackend(ctx context.Context) {
	move, err := p.rules.follow(ctx, p.now, p.filtersDue(p.now))
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.metrics.ConnmarkReconcile(err)
		p.fail(err)
	case move != nil:
		p.metrics.ConnmarkReconcile(nil)
		p.metrics.ConnmarkBackend(move.To)
		p.log.Warn("packet filter rules moved to the other backend of iptables", slog.String(logline.KeyBackend, move.To), slog.String(logline.KeyReason, move.Reason))
		p.feed.Append(introspect.Event{At: p.now, Kind: introspect.EventBackendChanged, Reason: move.To, Message: move.String()})
	}
}

// later reports whether a thing is left alone for now because others keep removing it.
func (p *repairs) later(thing string) bool {
	wait := p.backoff.Wait(p.now, thing)
	if wait > 0 && (p.wait == 0 || wait < p.wait) {
		p.wait = wait
	}
	return wait > 0
}

// anyDue reports whether any loss of a thing should be repaired now.
func (p *repairs) anyDue(lost []hostnet.Loss, of string) bool {
	due := false
	for _, l := range lost {
		due = !p.later(l.Object+" "+of) || due
	}
	return due
}

// noted records a restored loss. Several losses of one kind and thing in a pass count as one.
func (p *repairs) noted(thing string, l hostnet.Loss) {
	p.done = append(p.done, l)
	if p.seen[thing] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[thing] = true
	if rules.Contested(p.backoff.Done(p.now, thing)) {
		if p.again == nil {
			p.again = map[string]bool{}
		}
		p.again[l.Object] = true
	}
}

// enis restores what ENIs lost.
func (p *repairs) enis(ctx context.Context, view *hostnet.View, enis []ipam.ENIState) {
	for _, e := range enis {
		if e.Primary || e.Held {
			continue
		}
		in := eniInput(e.ENI, p.ipv6, p.mtu)
		lost := view.LostOfENI(in)
		if !p.anyDue(lost, e.MAC) {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, assertENI)
		err := p.host.SetupENI(limit, in)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				p.fail(err)
			}
			continue
		}
		if p.givenBack(e.ID) {
			if err := p.host.TeardownENI(ctx, e.PrimaryIP); err != nil {
				p.fail(err)
			}
			continue
		}
		for _, l := range lost {
			p.noted(l.Object+" "+e.MAC, l)
		}
	}
}

// addressReturned reports whether an ENI has left the pool meanwhile.
func (p *repairs) givenBack(id ipam.ENIID) bool {
	used, ok := ask(p.owner, func(k *keeper.Keeper, _ time.Time) bool {
		return slices.ContainsFunc(k.ENIs(), func(e ipam.ENIState) bool { return e.ID == id && !e.Held })
	})
	return ok && !used
}

// nodeState restores what the node lost. With filters it also checks packet filters; what they
// lack shows only when it is restored.
func (p *repairs) nodeState(ctx context.Context, view *hostnet.View, filters bool) {
	in := p.rules.input()
	before := p.host.LostOfNode(view, in)
	if !p.anyDue(before, "") && (!filters || p.later(hostnet.ObjectPacketFilter+" ")) {
		return
	}
	if filters {
		p.filters = p.now
	}
	lost, err := p.rules.assert(ctx)
	p.mu.Lock()
	p.node.took(p.now)
	p.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			p.metrics.ConnmarkReconcile(err)
			p.fail(err)
		}
		return
	}
	if len(lost) > 0 {
		p.metrics.ConnmarkReconcile(nil)
	}
	if len(before) > 0 {
		after, err := p.host.View(ctx, p.ipv6)
		if err != nil {
			p.fail(err)
			return
		}
		still := p.host.StillLostOfNode(after, in)
		lost = append(lost, slices.DeleteFunc(before, func(l hostnet.Loss) bool { return slices.Contains(still, l) })...)
	}
	for _, l := range lost {
		p.noted(l.Object+" ", l)
	}
}
