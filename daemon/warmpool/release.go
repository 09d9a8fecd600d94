package warmpool

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
)

// gate is the earliest time of a release, and what it waits for.
type gate struct {
	opens time.Time
	why   Reason
}

// later is the one of two gates that opens last.
func (g gate) later(h gate) gate {
	if h.opens.After(g.opens) {
		return h
	}
	return g
}

// gates are the times before which nothing is cleaned up and nothing is scaled
// down.
func gates(s *Snapshot, p *Policy) (clean, shrink gate) {
	clean = gate{s.ReleaseBackoff, ReleaseBackedOff}
	if s.LastScaleDown.IsZero() {
		return clean, clean
	}
	return clean, clean.later(gate{s.LastScaleDown.Add(p.ScaleDownInterval), ScaleDownSpacing})
}

// mayRelease reports whether anything at all may be given back: not on a cordoned
// node, whose instance is likely to end, and not while the address of some
// assignment is in no known CIDR, for it may be in one that looks unused.
func (pl *planner) mayRelease() bool {
	return !pl.frozen && len(pl.s.Book.Unplaced) == 0
}

// detachable reports whether the ENI can be detached as it is, whatever its age.
func (e *eni) detachable() bool {
	return !e.Primary && !e.Trunk && !e.EFA && !e.busy && e.held == 0 && e.quarantined == 0 && e.assigned == 0 && e.cooling == 0
}

// leave plans to detach an ENI, now or as soon as it is old enough. Until then the
// plan treats it as gone, so that no other ENI is drained in its place.
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

// release plans to give back up to n unused CIDRs of one kind, the highest first,
// and returns how many there are or will be when the gate opens.
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

// unused reports whether a CIDR of an ENI can be given back now.
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
