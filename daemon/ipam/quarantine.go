package ipam

import (
	"fmt"
	"net/netip"
	"time"
)

// This file takes out of use what EC2 does not show any more.

// quarantineCIDRs begins the quarantine of CIDRs at a time, or ends it: zero.
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

// changeQuarantine keeps the time of a quarantine that lasts.
func changeQuarantine(have *time.Time, since time.Time) (changed bool) {
	if have.IsZero() == since.IsZero() {
		return false
	}
	*have = since
	return true
}

// shown fails when EC2 does not show the ENI or one of its CIDRs.
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
