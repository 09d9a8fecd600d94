package ipam

import (
	"fmt"
	"net/netip"
	"time"
)

// This file says whose connection tracking entries are to be deleted, and when.

// FlowsDue lists the addresses for whose entries a pass is due at now, and when the next
// address is due; zero if none is. The first pass is due at once, the last one lead before
// the cooldown ends. Addresses that wait for something else are left out.
func (b *Book) FlowsDue(now time.Time, lead time.Duration, waits func(netip.Addr) bool) (due []netip.Addr, next time.Time) {
	for r := b.cooling.first; r != nil; r = r.next {
		if r.passes == 0 || waits(r.addr) {
			continue
		}
		at := r.unassignedAt
		if r.passes == 1 && b.passes > 1 {
			at = at.Add(b.cooldown - lead)
		}
		switch {
		case !at.After(now):
			due = append(due, r.addr)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return due, next
}

func (b *Book) flowsDeleted(ev FlowsDeleted) (Change, error) {
	if ev.Began.IsZero() {
		return Change{}, fmt.Errorf("count a pass over connection tracking without a time: %w", ErrInvalid)
	}
	for _, a := range ev.Addresses {
		c := b.locate(a)
		if c == nil {
			continue // it has left the node
		}
		r := c.find(a)
		if r == nil || r.list != &b.cooling || r.passes == 0 || r.unassignedAt.After(ev.Began) {
			continue
		}
		switch {
		case ev.Again.IsZero():
			r.passes--
		case cooling(r.unassignedAt, ev.Again, b.cooldown):
			continue
		default:
			r.passes = 0
		}
		c.touch()
	}
	b.endCooldowns()
	return Change{}, nil
}

// Spare reports whether an address belongs to one of the book's CIDRs and no sandbox has it.
func (b *Book) Spare(a netip.Addr) bool { return b.locate(a) != nil && b.taken[a] == nil }
