package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// This file changes which CIDRs the ENIs hold.

func (b *Book) addCIDRs(ev AddCIDRs) (Change, error) {
	e, err := b.findENI(ev.ID)
	if err != nil {
		return Change{}, fmt.Errorf("add addresses: %w", err)
	}
	fresh, err := b.newCIDRs(e, ev.CIDRs)
	if err != nil {
		return Change{}, fmt.Errorf("add addresses to ENI %s: %w", e.ID, err)
	}
	return b.insertCIDRs(e, fresh), nil
}

func (b *Book) removeCIDRs(ev RemoveCIDRs) (Change, error) {
	e, cidrs, err := b.findCIDRs(ev.ID, ev.CIDRs)
	if err != nil {
		return Change{}, fmt.Errorf("remove addresses: %w", err)
	}
	if !ev.Force {
		if err := unassignedOnly(cidrs); err != nil {
			return Change{}, fmt.Errorf("remove addresses of ENI %s: %w", e.ID, err)
		}
	}
	var ch Change
	for _, c := range cidrs {
		ch.Released = append(ch.Released, b.dropCIDR(c)...)
	}
	return ch, nil
}

func (b *Book) holdCIDRs(ev HoldCIDRs) (Change, error) {
	e, cidrs, err := b.findCIDRs(ev.ID, ev.CIDRs)
	if err != nil {
		return Change{}, fmt.Errorf("hold addresses: %w", err)
	}
	if err := unassignedOnly(cidrs); err != nil {
		return Change{}, fmt.Errorf("hold addresses of ENI %s: %w", e.ID, err)
	}
	if err := e.shown(cidrs); err != nil {
		return Change{}, fmt.Errorf("hold addresses of ENI %s: %w", e.ID, err)
	}
	for _, c := range cidrs {
		b.setHeld(c, true)
	}
	return Change{}, nil
}

func (b *Book) unholdCIDRs(ev UnholdCIDRs) (Change, error) {
	_, cidrs, err := b.findCIDRs(ev.ID, ev.CIDRs)
	if err != nil {
		return Change{}, fmt.Errorf("unhold addresses: %w", err)
	}
	for _, c := range cidrs {
		b.setHeld(c, false)
	}
	return b.placeInto(cidrs), nil
}

func (b *Book) setHeld(c *cidr, held bool) {
	if c.held != held {
		c.held = held
		c.touch()
		b.reorder(c)
	}
}

// findCIDRs finds CIDRs of one ENI, without duplicates.
func (b *Book) findCIDRs(id ENIID, prefixes []netip.Prefix) (*eni, []*cidr, error) {
	e, err := b.findENI(id)
	if err != nil {
		return nil, nil, err
	}
	found := make([]*cidr, 0, len(prefixes))
	for _, p := range prefixes {
		c := b.cidrs[p]
		if c == nil || c.eni != e {
			return nil, nil, fmt.Errorf("find %v on ENI %s: %w", p, id, ErrUnknownCIDR)
		}
		if !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return e, found, nil
}

func unassignedOnly(cidrs []*cidr) error {
	for _, c := range cidrs {
		if c.assigned > 0 {
			return fmt.Errorf("%v with %d pods: %w", c.prefix, c.assigned, ErrCIDRInUse)
		}
	}
	return nil
}

// newCIDRs returns the prefixes that the ENI does not hold yet, in order, or an error if one
// of them cannot be on it.
func (b *Book) newCIDRs(e *eni, prefixes []netip.Prefix) ([]netip.Prefix, error) {
	var fresh []netip.Prefix
	for _, p := range prefixes {
		if err := validateCIDR(p); err != nil {
			return nil, err
		}
		if e.PrimaryIP.IsValid() && p.Contains(e.PrimaryIP) {
			return nil, fmt.Errorf("%v holds the primary address %v: %w", p, e.PrimaryIP, ErrInvalid)
		}
		switch have := b.cidrs[p]; {
		case have != nil && have.eni == e:
			continue
		case have != nil:
			return nil, fmt.Errorf("%v is on ENI %s: %w", p, have.eni.ID, ErrDuplicate)
		}
		if err := b.overlap(p); err != nil {
			return nil, err
		}
		fresh = append(fresh, p)
	}
	slices.SortFunc(fresh, comparePrefixes)
	fresh = slices.Compact(fresh)
	// In this order a prefix comes right before everything that it contains.
	var widest netip.Prefix
	for _, p := range fresh {
		if widest.IsValid() && widest.Overlaps(p) {
			return nil, fmt.Errorf("%v overlaps %v: %w", p, widest, ErrDuplicate)
		}
		widest = p
	}
	return fresh, nil
}

func comparePrefixes(p, q netip.Prefix) int {
	return cmp.Or(p.Addr().Compare(q.Addr()), cmp.Compare(p.Bits(), q.Bits()))
}

// overlap fails if a CIDR of another length covers some of the same addresses.
func (b *Book) overlap(p netip.Prefix) error {
	if p.IsSingleIP() {
		if c := b.locate(p.Addr()); c != nil {
			return fmt.Errorf("%v lies in %v of ENI %s: %w", p, c.prefix, c.eni.ID, ErrDuplicate)
		}
		return nil
	}
	for _, c := range b.cidrs { // prefixes are added rarely, and this is a few hundred comparisons
		if p.Overlaps(c.prefix) {
			return fmt.Errorf("%v covers %v of ENI %s: %w", p, c.prefix, c.eni.ID, ErrDuplicate)
		}
	}
	return nil
}

// insertCIDRs adds validated prefixes and places the unplaced assignments in them.
func (b *Book) insertCIDRs(e *eni, fresh []netip.Prefix) Change {
	added := make([]*cidr, 0, len(fresh))
	for _, p := range fresh {
		c := &cidr{eni: e, prefix: p, size: prefixSize(p), pool: &e.pools[prefixClass(p)]}
		i, _ := e.search(p)
		e.cidrs = slices.Insert(e.cidrs, i, c)
		b.cidrs[p] = c
		c.touch()
		b.reorder(c)
		added = append(added, c)
	}
	return b.placeInto(added)
}

// dropCIDR removes a CIDR with its records and returns the assignments it ended.
func (b *Book) dropCIDR(c *cidr) []Assignment {
	var released []Assignment
	for _, r := range c.records {
		if r.assigned() {
			released = append(released, r.assignment())
			b.disown(r)
		}
		r.unlink()
	}
	c.count(-c.assigned)
	c.pool.cidrs.update(c, false)
	b.reorderENI(c.eni)
	if i, ok := c.eni.search(c.prefix); ok {
		c.eni.cidrs = slices.Delete(c.eni.cidrs, i, i+1)
	}
	delete(b.cidrs, c.prefix)
	c.eni.touch()
	return released
}

// placeInto places the unplaced assignments whose address is in one of the CIDRs, if the CIDR
// is in use.
func (b *Book) placeInto(cidrs []*cidr) Change {
	var ch Change
	if len(b.unplaced) == 0 {
		return ch
	}
	waiting := b.unplaced[:0]
	for _, r := range b.unplaced {
		c := b.locate(r.addr)
		if c == nil || !c.inUse() || !slices.Contains(cidrs, c) {
			waiting = append(waiting, r)
			continue
		}
		b.place(c, r)
		ch.Assigned = append(ch.Assigned, r.assignment())
	}
	clear(b.unplaced[len(waiting):])
	b.unplaced = waiting
	if len(ch.Assigned) > 0 {
		b.touchUnplaced()
	}
	return ch
}

// place puts an assigned record into a CIDR, replacing a free record of the same address, if
// there is one.
func (b *Book) place(c *cidr, r *record) {
	if old := c.find(r.addr); old != nil {
		r.unassignedAt, r.passes = old.unassignedAt, old.passes
		c.forget(old)
	}
	c.insert(r)
	b.counted(c, +1)
}

func (b *Book) touchUnplaced() { b.stale, b.staleUnplaced = true, true }

// IsHostAddr reports whether an address can be a pod's or a node's. Any other, from an answer
// that cannot be right, would break the node.
func IsHostAddr(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !(a.Is4() && a.As4()[0] == 0)
}

// WantHostAddr describes such an address in errors.
const WantHostAddr = "a unicast address of a host"
