package warmpool

import (
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/ipam"
)

// prefixSize and prefixSize6 are the number of addresses of a /28 and of a /80.
const (
	prefixSize  = limits.PrefixSize
	prefixSize6 = limits.PrefixSize6
)

// pool is the state of one network card: the totals of what the book holds there.
type pool struct {
	card     int
	prefixes bool // counts /28s or /80s, else secondary IPs
	ipv6     bool // counts /80s
	enis     []eni

	// Addresses in CIDRs of the active kind, on ENIs that serve pods, without held and
	// quarantined ones. Free = total − assigned − cooling.
	total, assigned, cooling int
	freePrefixes             int       // prefixes with no address assigned or in cooldown
	misplaced                int       // CIDRs that EC2 has moved, see Snapshot.Misplaced
	pending                  int       // addresses in flight from EC2
	waiting                  int       // ADDs that found the pool empty
	expected                 int       // further ADDs to come, see foresee
	coolEnd                  time.Time // when the first address in cooldown becomes free

	arriving  []*Pending // ENIs being attached, without late ones
	attaching bool       // an ENI is being attached, late or not

	attached int  // ENIs that occupy a slot: in the book, elsewhere, in flight, planned
	trunk    bool // a trunk ENI is attached
	devices  [maxDevices]bool
}

// maxDevices bounds the device indexes of a card; no card has that many slots.
const maxDevices = 128

// eni is one ENI of a pool.
type eni struct {
	*ipam.ENIState
	serves  bool // gives addresses to pods
	busy    bool // an operation on it is in flight or planned
	filled  bool // this plan asks for addresses on it
	leaving bool // to be detached, now or once allowed

	cidrs    int // CIDRs on it that occupy slots: all of IPv4, or /80s in an IPv6 cluster
	held     int // of those, being released: in flight or planned
	incoming int // CIDRs in flight to it

	quarantined int // CIDRs that EC2 does not show: they occupy slots until that is confirmed

	surplus   int       // CIDRs of the active kind with no address assigned or in cooldown, not held or quarantined
	misfits   int       // the same for the other kind
	assigned  int       // addresses of pods, either kind
	cooling   int       // either kind
	cleanable time.Time // when the first address in cooldown in a CIDR that pods cannot use becomes free
}

// free is the number of addresses that a pod could get now.
func (po *pool) free() int { return po.total - po.assigned - po.cooling }

// usable is the number of addresses that pods have or could get now.
func (po *pool) usable() int { return po.total - po.cooling }

// unit is the number of addresses of one CIDR.
func (po *pool) unit() int {
	switch {
	case po.ipv6:
		return prefixSize6
	case po.prefixes:
		return prefixSize
	}
	return 1
}

// draw is the demand of one CIDR on a subnet.
func (po *pool) draw() draw {
	switch {
	case po.ipv6:
		return draw{block: true}
	case po.prefixes:
		return draw{addresses: prefixSize, block: true}
	}
	return draw{addresses: 1}
}

// units is the number of CIDRs needed for that many addresses.
func (po *pool) units(addresses int) int {
	if addresses <= 0 {
		return 0
	}
	return (addresses + po.unit() - 1) / po.unit()
}

// cards is the number of network cards that have a pool.
func cards(s *Snapshot, p *Policy) int {
	if !p.MultiNIC {
		return min(1, len(s.Limits.ENIsByCard))
	}
	return len(s.Limits.ENIsByCard)
}

// at is list[i], or the zero value beyond its end.
func at[T any](list []T, i int) T {
	if i < len(list) {
		return list[i]
	}
	var zero T
	return zero
}

func newPool(s *Snapshot, p *Policy, now time.Time, card int) *pool {
	po := &pool{
		card:     card,
		prefixes: p.PrefixDelegation || p.IPv6,
		ipv6:     p.IPv6,
		enis:     make([]eni, 0, len(s.Book.ENIs)),
		waiting:  max(0, at(s.Waiting, card)),
		attached: max(0, at(s.OtherENIs, card)),
	}
	for _, d := range at(s.OtherDevices, card) {
		po.occupy(d)
	}
	for i := range s.Book.ENIs {
		if st := &s.Book.ENIs[i]; st.Card == card {
			po.add(st, s.Misplaced[st.ID], p, now)
		}
	}
	for i := range s.Pending {
		po.expect(&s.Pending[i])
	}
	po.expected = po.foresee(s, p, now)
	return po
}

func (po *pool) occupy(device int) {
	if device >= 0 && device < maxDevices {
		po.devices[device] = true
	}
}

// add counts one ENI of the book, and its misplaced CIDRs, which the book has elsewhere.
func (po *pool) add(st *ipam.ENIState, misplaced int, p *Policy, now time.Time) {
	po.attached++
	po.occupy(st.Device)
	po.trunk = po.trunk || st.Trunk
	e := eni{
		ENIState: st,
		cidrs:    misplaced,
		busy:     st.Held || st.Quarantined(),
		serves:   !st.Held && !st.Quarantined() && !st.Excluded && !(p.CustomNetworking && st.Primary),
	}
	po.misplaced += misplaced
	for i := range st.CIDRs {
		po.count(&e, &st.CIDRs[i], p, now)
	}
	po.enis = append(po.enis, e)
}

// count adds one CIDR to its ENI and, if pods can use it, to the pool.
func (po *pool) count(e *eni, c *ipam.CIDRState, p *Policy, now time.Time) {
	e.assigned += c.Assigned
	cooling, end := cool(c, now, p.Cooldown)
	e.cooling += cooling
	ours := c.Prefix.Addr().Is4() != po.ipv6
	active := ours && c.IsPrefix() == po.prefixes
	if e.serves && active && !c.Quarantined() {
		po.coolEnd = earlier(po.coolEnd, end)
	} else {
		e.cleanable = earlier(e.cleanable, end)
	}
	if !ours || po.ipv6 && !active {
		return // it takes no slot of the pool, and the pool must not release it
	}
	e.cidrs++
	if c.Held {
		e.held++
		return
	}
	if c.Quarantined() {
		e.quarantined++
		return
	}
	idle := c.Assigned == 0 && cooling == 0
	if !active {
		if idle {
			e.misfits++
		}
		return
	}
	if idle {
		e.surplus++
	}
	if !e.serves {
		return
	}
	po.total += po.unit()
	po.assigned += c.Assigned
	po.cooling += cooling
	if idle && po.prefixes {
		po.freePrefixes++
	}
}

// expect counts one operation in flight.
func (po *pool) expect(op *Pending) {
	got := op.IPs
	if po.prefixes {
		got = op.Prefixes * po.unit()
	}
	if op.Kind == PendingAttach {
		if op.Card == po.card {
			po.attached++
			po.attaching = true
			po.occupy(op.Device)
			if !op.Late {
				po.pending += max(0, got)
				po.arriving = append(po.arriving, op)
			}
		}
		return
	}
	for i := range po.enis {
		e := &po.enis[i]
		if e.ID != op.ENI {
			continue
		}
		e.busy = true
		if op.Kind == PendingAssign {
			e.incoming += max(0, op.IPs) + max(0, op.Prefixes)
			if e.serves && !op.Late {
				po.pending += max(0, got)
			}
		}
	}
}

// cool counts the addresses of a CIDR in cooldown and returns when the first of them is free
// again. It is ipam.AddressState.Cooling for a whole CIDR, cheap enough to run over every
// address of the node.
func cool(c *ipam.CIDRState, now time.Time, cooldown time.Duration) (n int, end time.Time) {
	if len(c.Records) == c.Assigned {
		return 0, time.Time{}
	}
	since := now.Add(-cooldown)
	for i := range c.Records {
		r := &c.Records[i]
		if r.UnassignedAt.Before(since) && !r.Tracked || r.UnassignedAt.IsZero() || r.Assigned() {
			continue
		}
		n++
		end = earlier(end, r.UnassignedAt)
	}
	if n > 0 {
		end = ipam.CooldownEnd(end, now, cooldown)
	}
	return n, end
}

// earlier is the earlier of two times; the zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
