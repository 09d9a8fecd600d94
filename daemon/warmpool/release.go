package warmpool

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
)

// gate is the earliest time of a release, and the reason to wait for it.
type gate struct {
	opens time.Time
	why   Reason
}

// later returns the gate that opens last.
func (g gate) later(h gate) gate {
	if h.opens.After(g.opens) {
		return h
	}
	return g
}

// gates are the times before which nothing is cleaned up or scaled down.
func gates(s *Snapshot, p *Policy) (clean, shrink gate) {
	clean = gate{s.ReleaseBackoff, ReleaseBackedOff}
	if s.LastScaleDown.IsZero() {
		return clean, clean
	}
	return clean, clean.later(gate{s.LastScaleDown.Add(p.ScaleDownInterval), ScaleDownSpacing})
}

// mayRelease reports whether anything may be released at all: not on a cordoned node, whose
// instance is likely to end, not while EC2 throttles, and not while the address of an
// assignment is in no known CIDR, since it may be in one that looks unused.
func (pl *planner) mayRelease() bool {
	return !pl.frozen && len(pl.s.Book.Unplaced) == 0
}

// detachable reports whether the ENI can be detached in its current state, whatever its age.
func (e *eni) detachable() bool {
	return !e.Primary && !e.Trunk && !e.EFA && !e.busy && e.held == 0 && e.quarantined == 0 && e.assigned == 0 && e.cooling == 0
}

// leave plans to detach an ENI, now or once it is old enough. Until then the plan treats it as
// gone, so that no other ENI is drained instead.
func (pl *planner) leave(e *eni, g gate, why Reason) {
	e.leaving = true
	if !e.AttachedAt.IsZero() {
		g = g.later(gate{e.AttachedAt.Add(pl.p.ENIMinAge), ENITooYoung})
	}
	if g.opens.After(pl.now) {
		pl.waitFor(g.opens, g.why)
		return
	}
	e.busy = true
	pl.releases = append(pl.releases, DetachENI{ENI: e.ID, Reason: why})
}

// release plans to release up to n unused CIDRs of one kind, the highest first, as on every node, so that
// the same /28s of the subnet become free. It returns how many it releases, now or when the gate opens.
func (pl *planner) release(e *eni, prefixes bool, n int, g gate, why Reason) int {
	if n <= 0 {
		return 0
	}
	if g.opens.After(pl.now) {
		pl.waitFor(g.opens, g.why)
		return n
	}
	cidrs := make([]netip.Prefix, 0, n)
	for i := len(e.CIDRs) - 1; i >= 0 && len(cidrs) < n; i-- {
		if c := &e.CIDRs[i]; c.IsPrefix() == prefixes && pl.unused(e, c) {
			cidrs = append(cidrs, c.Prefix)
		}
	}
	e.busy = true
	e.held += len(cidrs)
	if prefixes {
		pl.releases = append(pl.releases, UnassignPrefixes{ENI: e.ID, CIDRs: cidrs, Reason: why})
	} else {
		pl.releases = append(pl.releases, UnassignAddresses{ENI: e.ID, CIDRs: cidrs, Reason: why})
	}
	return len(cidrs)
}

// unused reports whether a CIDR of an ENI can be released now.
func (pl *planner) unused(e *eni, c *ipam.CIDRState) bool {
	if c.Held || c.Quarantined() || c.Assigned > 0 || c.Prefix.Addr().Is4() == pl.p.IPv6 {
		return false
	}
	if e.cooling == 0 {
		return true
	}
	cooling, _ := cool(c, pl.now, pl.p.Cooldown)
	return cooling == 0
}
