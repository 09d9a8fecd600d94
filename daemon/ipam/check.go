package ipam

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Check verifies every invariant of the book and reports all that are broken. It walks
// everything: tests call it after every event, the daemon never during a request.
func (b *Book) Check() error {
	var k checker
	k.owners(b)
	k.unplaced(b)
	k.enis(b)
	k.overlaps(b)
	k.pools(b)
	k.coolingList(b)
	k.snapshot(b)
	return errors.Join(k.broken...)
}

type checker struct{ broken []error }

func (k *checker) that(ok bool, format string, args ...any) {
	if !ok {
		k.broken = append(k.broken, fmt.Errorf("book: "+format, args...))
	}
}

func (k *checker) owners(b *Book) {
	k.that(len(b.owners) == len(b.taken), "%d sandboxes own %d addresses", len(b.owners), len(b.taken))
	for s, r := range b.owners {
		k.that(r.sandbox == s && r.assigned(), "sandbox %v leads to the record of %v", s, r.sandbox)
		k.that(s.Interface >= 0 && s.Interface <= b.lastInterface, "interface of %v is beyond %d", s, b.lastInterface)
		k.that(b.taken[r.addr] == r, "address %v of %v leads elsewhere", r.addr, s)
		k.that(r.list == nil, "assigned address %v is on a list of free ones", r.addr)
		if r.cidr == nil {
			k.that(slices.Contains(b.unplaced, r), "address %v of %v is in no CIDR and not unplaced", r.addr, s)
		} else {
			k.that(b.cidrs[r.cidr.prefix] == r.cidr, "address %v is in a CIDR that was removed", r.addr)
			k.that(r.cidr.find(r.addr) == r, "CIDR %v does not hold its record %v", r.cidr.prefix, r.addr)
			k.that(r.cidr.inUse(), "address %v is assigned while held", r.addr)
		}
	}
}

func (k *checker) unplaced(b *Book) {
	for i, r := range b.unplaced {
		k.that(r.cidr == nil && r.assigned() && b.owners[r.sandbox] == r, "unplaced %v is not an assignment", r.addr)
		k.that(i == 0 || b.unplaced[i-1].addr.Less(r.addr), "unplaced %v is out of order", r.addr)
		c := b.locate(r.addr)
		k.that(c == nil || !c.inUse(), "unplaced %v lies in a CIDR that is in use", r.addr)
	}
}

func (k *checker) enis(b *Book) {
	k.that(len(b.enis) == len(b.eniByID), "%d ENIs in order, %d by id", len(b.enis), len(b.eniByID))
	cidrs := 0
	for i, e := range b.enis {
		k.that(b.eniByID[e.ID] == e, "ENI %s leads elsewhere", e.ID)
		k.that(i == 0 || compareENIs(b.enis[i-1], e) < 0, "ENI %s is out of order", e.ID)
		assigned := 0
		for j, c := range e.cidrs {
			k.that(c.eni == e && b.cidrs[c.prefix] == c, "CIDR %v of ENI %s leads elsewhere", c.prefix, e.ID)
			k.that(j == 0 || comparePrefixes(e.cidrs[j-1].prefix, c.prefix) < 0, "CIDR %v is out of order", c.prefix)
			k.that(!c.held || c.assigned == 0, "CIDR %v is held with %d pods", c.prefix, c.assigned)
			k.cidr(b, c)
			assigned += c.assigned
		}
		k.that(e.assigned == assigned, "ENI %s counts %d pods, has %d", e.ID, e.assigned, assigned)
		k.that(!e.held || assigned == 0, "ENI %s is held with %d pods", e.ID, assigned)
		cidrs += len(e.cidrs)
	}
	k.that(len(b.cidrs) == cidrs, "%d CIDRs by prefix, %d on ENIs", len(b.cidrs), cidrs)
}

func (k *checker) cidr(b *Book, c *cidr) {
	assigned, cooled := 0, 0
	for i, r := range c.records {
		k.that(r.cidr == c && c.prefix.Contains(r.addr), "record %v is in the wrong CIDR %v", r.addr, c.prefix)
		k.that(i == 0 || c.records[i-1].addr.Less(r.addr), "record %v is out of order", r.addr)
		switch {
		case r.assigned():
			assigned++
			k.that(b.owners[r.sandbox] == r, "owner %v of %v leads elsewhere", r.sandbox, r.addr)
		case r.list == &c.cooled:
			cooled++
			k.that(!b.rests(r), "address %v is free while in cooldown", r.addr)
			k.that(r.aged == (b.now.Sub(r.unassignedAt) >= freshAfter), "address %v counts wrongly as one never used", r.addr)
		case r.list == &b.cooling:
			k.that(b.rests(r), "address %v cools too long", r.addr)
		default:
			k.that(false, "free address %v is on no list", r.addr)
		}
		k.that(r.assigned() || !r.unassignedAt.IsZero(), "free address %v was never assigned", r.addr)
	}
	k.that(assigned == c.assigned, "CIDR %v counts %d pods, has %d", c.prefix, c.assigned, assigned)
	k.that(k.list(&c.cooled) == cooled, "list of free addresses of %v is wrong", c.prefix)
	k.that(uint64(len(c.records)) <= c.size, "CIDR %v has %d records", c.prefix, len(c.records))
}

// list checks the links and the order of a list and returns its length.
func (k *checker) list(l *recordList) int {
	n := 0
	var last *record
	for r := l.first; r != nil; r = r.next {
		k.that(r.list == l && r.prev == last, "links of %v are wrong", r.addr)
		k.that(last == nil || last.freedBefore(r), "free address %v is out of order", r.addr)
		last = r
		n++
	}
	k.that(l.last == last, "last link is wrong")
	return n
}

func (k *checker) overlaps(b *Book) {
	cidrs := make([]*cidr, 0, len(b.cidrs))
	for _, c := range b.cidrs {
		cidrs = append(cidrs, c)
	}
	slices.SortFunc(cidrs, func(x, y *cidr) int { return comparePrefixes(x.prefix, y.prefix) })
	for i := 1; i < len(cidrs); i++ {
		k.that(!cidrs[i-1].prefix.Overlaps(cidrs[i].prefix), "CIDRs %v and %v overlap", cidrs[i-1].prefix, cidrs[i].prefix)
	}
}

func (k *checker) pools(b *Book) {
	for key, h := range b.pools {
		checkHeap(k, h, fmt.Sprintf("card %d class %d", key.card, key.class))
	}
	for _, e := range b.enis {
		for i := range e.pools {
			p := &e.pools[i]
			k.that(p.card == b.pools[poolKey{e.Card, class(i)}], "pool %d of ENI %s is on the wrong card", i, e.ID)
			k.that((p.at > 0) == (e.usable() && !p.cidrs.empty()), "pool %d of ENI %s is in or out wrongly", i, e.ID)
			checkHeap(k, &p.cidrs, string(e.ID))
		}
		for _, c := range e.cidrs {
			k.that(c.pool == &e.pools[prefixClass(c.prefix)], "CIDR %v is in the wrong pool", c.prefix)
			k.that((c.at > 0) == c.mayGive(), "CIDR %v is in or out of its pool wrongly", c.prefix)
		}
	}
}

func checkHeap[T ranked[T]](k *checker, h *heap[T], name string) {
	for i, x := range h.items {
		k.that(*x.position() == i+1, "heap %s: element %d believes it is %d", name, i, *x.position()-1)
		k.that(i == 0 || !x.before(h.items[(i-1)/2]), "heap %s: element %d is out of order", name, i)
	}
}

func (k *checker) coolingList(b *Book) {
	k.list(&b.cooling)
	for r := b.cooling.first; r != nil; r = r.next {
		k.that(r.cidr != nil && b.cidrs[r.cidr.prefix] == r.cidr, "cooling %v is in no CIDR", r.addr)
	}
}

// snapshot verifies that the last snapshot is still right about unchanged parts.
func (k *checker) snapshot(b *Book) {
	for _, e := range b.enis {
		for _, c := range e.cidrs {
			if !c.stale {
				again := *c
				again.stale = true
				k.that(reflect.DeepEqual(c.state, again.snapshot()), "snapshot of CIDR %v is outdated", c.prefix)
			} else {
				k.that(e.stale, "ENI %s hides a change of %v from snapshots", e.ID, c.prefix)
			}
		}
		if !e.stale {
			k.that(e.state.ENI == e.ENI && e.state.Held == e.held && e.state.QuarantinedAt.Equal(e.quarantined) && len(e.state.CIDRs) == len(e.cidrs), "snapshot of ENI %s is outdated", e.ID)
		} else {
			k.that(b.stale, "book hides a change of ENI %s from snapshots", e.ID)
		}
	}
	if !b.stale {
		k.that(len(b.snapshot.ENIs) == len(b.enis) && len(b.snapshot.Unplaced) == len(b.unplaced), "snapshot is outdated")
	}
}
