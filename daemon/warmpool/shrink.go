package warmpool

import (
	"cmp"
	"slices"
)

// shrink plans the release of what exceeds the targets: first empty ENIs, which also frees a
// slot and a primary address, then single CIDRs of the emptiest ENIs, so that those empty next.
// It never makes the pool short: it judges the pool as it will be afterwards. An IPv6 pool
// holds nothing to spare.
func (pl *planner) shrink(po *pool) {
	if po.ipv6 || !pl.mayRelease() || po.waiting > 0 || po.pending > 0 {
		return
	}
	t := targetsOf(po, pl.p)
	left := excess(po, t, pl.perENI)
	if po.expected > 0 && pl.s.Expected == nil {
		pl.waitFor(pl.now.Add(rampMoment), ExpectedPods) // by then they have arrived, or will not
	}
	for _, e := range po.order(byFewestCIDRs) {
		if e.detachable() && e.surplus <= left {
			left -= e.surplus
			pl.leave(e, pl.shrinkGate, SurplusENI)
		}
	}
	if t.ips || t.prefixes {
		why := SurplusIPs
		if po.prefixes {
			why = SurplusPrefixes
		}
		for _, e := range po.order(byEmptiest) {
			if !e.busy && !e.leaving {
				left -= pl.release(e, po.prefixes, min(left, e.surplus), pl.shrinkGate, why)
			}
		}
	}
	if pl.coolingMatters(po, t) {
		pl.waitFor(po.coolEnd, AddressesCooling)
	}
}

// coolingMatters reports whether something may be released once the addresses in cooldown are
// free.
func (pl *planner) coolingMatters(po *pool, t targets) bool {
	over := po.total - po.assigned - po.expected - t.spareAddresses(pl.perENI)
	if po.cooling == 0 || over <= 0 {
		return false
	}
	if t.ips || t.prefixes {
		return po.total > t.minimum
	}
	for i := range po.enis {
		if e := &po.enis[i]; e.serves && e.assigned == 0 && !e.Primary && e.surplus <= over {
			return true
		}
	}
	return false
}

// order lists the serving ENIs.
func (po *pool) order(compare func(a, b *eni) int) []*eni {
	list := make([]*eni, 0, len(po.enis))
	for i := range po.enis {
		if po.enis[i].serves {
			list = append(list, &po.enis[i])
		}
	}
	slices.SortStableFunc(list, compare)
	return list
}

// byFewestCIDRs sorts ENIs for detaching: fewest CIDRs lost first, then last attached.
func byFewestCIDRs(a, b *eni) int {
	return cmp.Or(cmp.Compare(a.surplus, b.surplus), cmp.Compare(b.Device, a.Device))
}

// byEmptiest sorts ENIs for draining: the primary, which is never detached, comes last.
func byEmptiest(a, b *eni) int {
	switch {
	case a.Primary && !b.Primary:
		return 1
	case b.Primary && !a.Primary:
		return -1
	}
	return cmp.Or(cmp.Compare(a.assigned, b.assigned), cmp.Compare(a.cidrs, b.cidrs), cmp.Compare(b.Device, a.Device))
}

// byFullest sorts ENIs for filling: the primary, which is never detached, then those with the
// most pods, so that the others can empty.
func byFullest(a, b *eni) int {
	switch {
	case a.Primary && !b.Primary:
		return -1
	case b.Primary && !a.Primary:
		return 1
	}
	return cmp.Compare(b.assigned, a.assigned)
}
