package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// record is what the book knows about one address: assigned, in cooldown, or cooled (assigned
// before, now free).
type record struct {
	addr         netip.Addr
	cidr         *cidr   // nil if unplaced
	sandbox      Sandbox // zero if not assigned
	pod          Pod
	assignedAt   time.Time
	unassignedAt time.Time // the last time; kept while assigned, for Revert
	passes       int       // over connection tracking that it still needs since then
	aged         bool      // free, and unassigned for freshAfter

	list       *recordList // Book.cooling, cidr.cooled, or nil while assigned
	prev, next *record
}

func (r *record) assigned() bool { return r.sandbox != Sandbox{} }

// own makes a sandbox the owner of the address.
func (r *record) own(s Sandbox, p Pod, at time.Time) {
	r.sandbox, r.pod, r.assignedAt = s, p, at
}

func (r *record) assignment() Assignment {
	a := Assignment{
		Sandbox:    r.sandbox,
		Pod:        r.pod,
		Address:    r.addr,
		AssignedAt: r.assignedAt,
	}
	if c := r.cidr; c != nil {
		a.CIDR = c.prefix
		a.ENI = c.eni.ID
		a.Card = c.eni.Card
		a.Device = c.eni.Device
		a.RouteTable = c.eni.RouteTable
	}
	return a
}

func (r *record) state() AddressState {
	s := AddressState{Address: r.addr, Sandbox: r.sandbox, Pod: r.pod, AssignedAt: r.assignedAt}
	if !r.assigned() {
		s.UnassignedAt, s.Tracked = r.unassignedAt, r.passes > 0
	}
	return s
}

// freedBefore orders free records: the first unassigned is the first to be assigned again.
func (r *record) freedBefore(o *record) bool {
	if n := r.unassignedAt.Compare(o.unassignedAt); n != 0 {
		return n < 0
	}
	return r.addr.Less(o.addr)
}

// recordList is a doubly linked list of records in the order of freedBefore.
type recordList struct{ first, last *record }

// insert puts a record in its place. Time only moves forward, so that is nearly always the
// end; a Revert returns a record that came from the front.
func (l *recordList) insert(r *record) {
	after := l.last
	if l.first != nil && r.freedBefore(l.first) {
		after = nil
	}
	for after != nil && r.freedBefore(after) {
		after = after.prev
	}
	r.list, r.prev = l, after
	if after == nil {
		r.next, l.first = l.first, r
	} else {
		r.next, after.next = after.next, r
	}
	if r.next == nil {
		l.last = r
	} else {
		r.next.prev = r
	}
}

// unlink removes a record from its list, if it is on one.
func (r *record) unlink() {
	if r.list == nil {
		return
	}
	if r.prev == nil {
		r.list.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		r.list.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.list, r.prev, r.next = nil, nil, nil
}

func cooling(unassignedAt, now time.Time, cooldown time.Duration) bool {
	return cooldown > 0 && !unassignedAt.IsZero() && now.Sub(unassignedAt) <= cooldown
}

// rests reports whether a record is in cooldown.
func (b *Book) rests(r *record) bool {
	return r.passes > 0 || cooling(r.unassignedAt, b.now, b.cooldown)
}

// endCooldowns frees the addresses whose cooldown is over. It passes those that wait for the
// next pass over connection tracking: the few of about a second.
func (b *Book) endCooldowns() {
	for r := b.cooling.first; r != nil && !cooling(r.unassignedAt, b.now, b.cooldown); {
		next := r.next
		if !b.rests(r) {
			r.unlink()
			b.free(r)
			b.reorder(r.cidr)
		}
		r = next
	}
}

// freshAfter is how long an address must have been unassigned to be as good as one never used.
const freshAfter = 10 * time.Minute

// aging is an address that was free since a time, and may have been assigned again.
type aging struct {
	*record
	since time.Time
}

// free adds a record to the free ones of its CIDR. The caller moves the CIDR to its new rank.
func (b *Book) free(r *record) {
	r.cidr.cooled.insert(r)
	if r.aged = b.now.Sub(r.unassignedAt) >= freshAfter; r.aged {
		return
	}
	i := len(b.aging) // nearly always the last
	for i > 0 && r.unassignedAt.Before(b.aging[i-1].since) {
		i--
	}
	b.aging = slices.Insert(b.aging, i, aging{r, r.unassignedAt})
}

// age notes which free addresses have become as good as ones never used.
func (b *Book) age() {
	n := 0
	for n < len(b.aging) && b.now.Sub(b.aging[n].since) >= freshAfter {
		if r := b.aging[n].record; r.cidr != nil && r.list == &r.cidr.cooled && r.unassignedAt.Equal(b.aging[n].since) {
			r.aged = true
			b.reorder(r.cidr)
		}
		n++
	}
	clear(b.aging[:n])
	b.aging = b.aging[n:] // without a copy: there may be thousands behind
}
