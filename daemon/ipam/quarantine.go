package ipam

import (
	"fmt"
	"net/netip"
	"time"
)

// This file takes out of use whatever EC2 no longer shows.

// quarantineCIDRs starts the quarantine of CIDRs at a time or, with the zero time, ends it.
func (b *Book) quarantineCIDRs(id ENIID, prefixes []netip.Prefix, since time.Time) (Change, error) {
	_, cidrs, err := b.findCIDRs(id, prefixes)
	if err != nil {
		return Change{}, fmt.Errorf("quarantine addresses: %w", err)
	}
	for _, c := range cidrs {
		if changeQuarantine(&c.quarantined, since) {
			c.touch()
			b.reorder(c)
		}
	}
	return Change{}, nil
}

func (b *Book) quarantineENI(id ENIID, since time.Time) (Change, error) {
	e, err := b.findENI(id)
	if err != nil {
		return Change{}, fmt.Errorf("quarantine ENI: %w", err)
	}
	if changeQuarantine(&e.quarantined, since) {
		e.touch()
		b.reorderENI(e)
	}
	return Change{}, nil
}

// changeQuarantine starts or ends a quarantine; an ongoing one keeps its time.
func changeQuarantine(have *time.Time, since time.Time) (changed bool) {
	if have.IsZero() == since.IsZero() {
		return false
	}
	*have = since
	return true
}

// shown fails if the ENI or one of the CIDRs is quarantined.
func (e *eni) shown(cidrs []*cidr) error {
	if !e.quarantined.IsZero() {
		return fmt.Errorf("ENI %s: %w", e.ID, ErrQuarantined)
	}
	for _, c := range cidrs {
		if !c.quarantined.IsZero() {
			return fmt.Errorf("%v: %w", c.prefix, ErrQuarantined)
		}
	}
	return nil
}
