package warmpool

import (
	"cmp"
	"time"
)

// noBound is the number of CIDRs until max-pods if max-pods is unknown.
const noBound = 1 << 30

// growth is the state of one pool's growth during planning.
type growth struct {
	wanted    bool // the pool is short
	left      int  // CIDRs still needed
	room      int  // CIDRs until max-pods plus the reserve
	reserve   int  // the part of room beyond max-pods
	whole     bool // fill whole ENIs, as WARM_ENI_TARGET asks
	deferred  bool // a part of it waits for an operation on an ENI to end
	planned   int  // actions
	obstacles []obstacle
	why       Reason
}

func (g *growth) blocked(o obstacle) { g.obstacles = append(g.obstacles, o) }

// took records n CIDRs as planned.
func (g *growth) took(n int) {
	g.left -= n
	g.room -= n
}

// leave leaves n CIDRs to the next plan, after an operation in flight.
func (g *growth) leave(n int) {
	if n > 0 {
		g.deferred = true
		g.took(n)
	}
}

// more reports whether another CIDR is needed and allowed.
func (g *growth) more() bool { return g.left > 0 && g.room > 0 }

// step is how many CIDRs to request at once for that many free slots. If whole ENIs are filled,
// so is the one that reaches max-pods, as in upstream.
func (g *growth) step(slots int) int {
	if g.whole && g.room > g.reserve {
		return slots
	}
	return min(slots, g.left, g.room)
}

// grow plans the growth from what the pool has to what it wants, for all arriving pods at once:
// first the free slots of attached ENIs, then those of ENIs that are busy or being attached,
// then new ENIs.
func (pl *planner) grow(po *pool) growth {
	if po.ipv6 {
		return pl.grow6(po)
	}
	g := pl.wish(po)
	if g.left == 0 {
		return g
	}
	pl.fill(po, &g)
	pl.tryOneMore(po, &g)
	pl.deferTo(po, &g)
	pl.attach(po, &g)
	if g.left > 0 {
		pl.waitOut(&g)
		pl.waitFor(po.coolEnd, AddressesCooling)
	}
	return g
}

// waitOut asks for another plan when an obstacle may be gone.
func (pl *planner) waitOut(g *growth) {
	for _, o := range g.obstacles {
		pl.waitFor(o.until, o.reason())
	}
}

// wish computes what the pool lacks, and how much of it max-pods allows.
func (pl *planner) wish(po *pool) growth {
	t := targetsOf(po, pl.p)
	short, why := shortfall(po, t, pl.perENI)
	g := growth{why: why, whole: !t.ips && !t.prefixes}
	if pl.frozen {
		short = max(0, po.unserved())
		g.why = po.served()
		g.whole = g.whole && !cordoned(pl.s, pl.p) // a throttled request asks for all it may
	}
	g.left = po.units(short)
	g.wanted = g.left > 0
	g.room = noBound
	if pl.p.MaxPods > 0 {
		// Addresses in cooldown do not count: otherwise, on a full node, replacement pods would
		// have to wait for them.
		g.reserve = t.reserve(pl.p.MaxPods)
		g.room = po.units(pl.p.MaxPods + g.reserve - po.usable() - po.pending)
		if g.wanted && g.room <= 0 {
			g.blocked(obstacle{kind: atMaxPods})
			// At max-pods the targets count as met; waiting ADDs still prevent every release.
			g.wanted = po.waiting > 0
		}
	}
	return g
}

// fill plans requests for the free slots of attached ENIs.
func (pl *planner) fill(po *pool, g *growth) {
	refused := func(e *eni) time.Time { return pl.subnets.find(e.SubnetID).refused(po.draw()) }
	for _, e := range po.order(func(a, b *eni) int { return cmp.Or(refused(a).Compare(refused(b)), byFullest(a, b)) }) {
		slots := pl.perENI - e.cidrs - e.incoming
		if !e.grows() || e.busy || slots <= 0 || !g.more() {
			continue
		}
		n, why := pl.available(e, g.step(slots), po.draw())
		if n <= 0 {
			g.blocked(why)
			continue
		}
		pl.request(po, g, e, n)
	}
}

// request plans a request for n CIDRs on an attached ENI.
func (pl *planner) request(po *pool, g *growth, e *eni, n int) {
	g.took(n)
	g.planned++
	e.busy, e.filled = true, true
	if po.prefixes {
		pl.growth = append(pl.growth, AssignPrefixes{ENI: e.ID, Count: n, Reason: g.why})
	} else {
		pl.growth = append(pl.growth, AssignAddresses{ENI: e.ID, Count: n, Reason: g.why})
	}
}

// tryOneMore asks for one CIDR more than EC2 said that an ENI takes, once that was long ago, and
// on one ENI at a time.
func (pl *planner) tryOneMore(po *pool, g *growth) {
	stated := pl.s.Stated.Slots
	if !stated.There() || !g.more() {
		return
	}
	if !stated.due(pl.now) {
		g.blocked(obstacle{kind: statedSlots, until: stated.Retry})
		return
	}
	full := func(e *eni) bool { return e.grows() && e.cidrs+e.incoming == pl.perENI }
	for _, e := range po.order(byFullest) {
		if e.cidrs+e.incoming > pl.perENI {
			return // it is being tried
		}
		if !full(e) || e.busy {
			continue
		}
		if n, _ := pl.available(e, 1, po.draw()); n > 0 {
			pl.request(po, g, e, n)
			return
		}
	}
}

// available is how many of n CIDRs can be requested on an attached ENI.
func (pl *planner) available(e *eni, n int, d draw) (int, obstacle) {
	if until := pl.s.ENIBackoff[e.ID]; until.After(pl.now) {
		return 0, obstacle{kind: eniLate, subject: string(e.ID), until: until}
	}
	return pl.drawn(e.SubnetID, n, d)
}

// drawn reserves as many of n CIDRs as a subnet can give to an ENI that is already in it.
func (pl *planner) drawn(subnetID string, n int, d draw) (int, obstacle) {
	if n <= 0 {
		return 0, obstacle{}
	}
	subnet := pl.subnets.find(subnetID)
	if subnet == nil {
		return n, obstacle{}
	}
	n, why := pl.subnets.offer(subnet, n, 0, d)
	subnet.take(n * d.addresses)
	return n, why
}

// deferTo leaves to ENIs with an operation in flight what their free slots can hold: ENIs that
// are busy or being attached. When the operation ends, the next plan fills them. A new ENI
// instead would be one too many and, since it would get pods, would stay.
func (pl *planner) deferTo(po *pool, g *growth) {
	for i := range po.enis {
		e := &po.enis[i]
		if !e.grows() || !e.busy || e.filled || !g.more() {
			continue
		}
		// Slots whose CIDRs are being released count as free.
		slots := pl.perENI - (e.cidrs - e.held) - e.incoming
		n, _ := pl.available(e, min(slots, g.left, g.room), po.draw())
		g.leave(n)
	}
	for _, op := range po.arriving {
		slots := pl.perENI - max(0, op.IPs) - max(0, op.Prefixes)
		n, _ := pl.drawn(op.SubnetID, min(slots, g.left, g.room), po.draw())
		g.leave(n)
	}
}

// attach plans new ENIs, to be attached in parallel.
func (pl *planner) attach(po *pool, g *growth) {
	for g.more() {
		if pl.s.AttachBackoff.After(pl.now) {
			g.blocked(obstacle{kind: attachLate, until: pl.s.AttachBackoff})
			return
		}
		device, ok := po.freeDevice()
		if !ok || pl.slots(po) <= 0 || pl.perENI == 0 {
			g.blocked(obstacle{kind: atMaxENIs})
			if s := pl.s.Stated.Card(po.card); pl.bounds(po, s) {
				g.blocked(obstacle{kind: statedENIs, until: s.Retry})
			}
			return
		}
		if pl.s.NoUsableSubnet {
			g.blocked(obstacle{kind: noSubnet})
			return
		}
		subnet, n := pl.subnets.pick(g.step(pl.perENI), po.draw(), g.blocked)
		if n <= 0 {
			return
		}
		po.occupy(device)
		po.attached++
		g.took(n)
		g.planned++
		a := AttachENI{Card: po.card, Device: device, SubnetID: subnet, IPs: n, Reason: g.why}
		if po.prefixes {
			a.IPs, a.Prefixes = 0, n
		}
		pl.growth = append(pl.growth, a)
	}
}

// slots is how many ENIs the card can still take for pods. If EC2 stated its limit long ago, one
// more may be tried.
func (pl *planner) slots(po *pool) int {
	n := pl.vacant(po, at(pl.s.Limits.ENIsByCard, po.card))
	if s := pl.s.Stated.Card(po.card); s.due(pl.now) {
		n = max(n, min(s.Most+1-po.attached, pl.vacant(po, s.OfType)))
	}
	return n
}

// vacant is how many ENIs a card that takes most of them can still take for pods.
func (pl *planner) vacant(po *pool, most int) int {
	if pl.p.MaxENI > 0 {
		most = min(most, pl.p.MaxENI)
	}
	if pl.reserved(po) {
		most--
	}
	return most - po.attached
}

// bounds reports whether a stated limit alone keeps the card from another ENI.
func (pl *planner) bounds(po *pool, s Stated) bool { return s.There() && pl.vacant(po, s.OfType) > 0 }

// reserved reports whether a slot of the card is kept for a trunk.
func (pl *planner) reserved(po *pool) bool {
	return pl.p.ReserveTrunkSlot && po.card == 0 && !po.trunk
}

// freeDevice is the lowest device index that is neither used nor planned.
func (po *pool) freeDevice() (int, bool) {
	for d, used := range po.devices {
		if !used {
			return d, true
		}
	}
	return 0, false
}

// grows reports whether addresses may be added to an ENI.
func (e *eni) grows() bool { return e.serves && !e.Trunk }
