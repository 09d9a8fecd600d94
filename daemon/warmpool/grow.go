package warmpool

import (
	"cmp"
	"time"
)

// noBound stands for the CIDRs until max-pods when max-pods is not known.
const noBound = 1 << 30

// growth is the state of one pool's growth while it is planned.
type growth struct {
	wanted    bool // the pool is short
	left      int  // CIDRs still to be found
	room      int  // CIDRs until max-pods and the reserve
	reserve   int  // of them, those beyond max-pods
	whole     bool // fill whole ENIs, as WARM_ENI_TARGET asks
	deferred  bool // some of it waits for an operation on an ENI to end
	planned   int  // actions
	obstacles []obstacle
	why       Reason
}

func (g *growth) blocked(o obstacle) { g.obstacles = append(g.obstacles, o) }

// took books n CIDRs.
func (g *growth) took(n int) {
	g.left -= n
	g.room -= n
}

// leave books n CIDRs that an operation in flight makes way for.
func (g *growth) leave(n int) {
	if n > 0 {
		g.deferred = true
		g.took(n)
	}
}

// more reports whether another CIDR is wanted and allowed.
func (g *growth) more() bool { return g.left > 0 && g.room > 0 }

// step is how many CIDRs to ask for at once for that many free slots. Where whole ENIs
// are filled the one that reaches max-pods is too, as upstream does.
func (g *growth) step(slots int) int {
	if g.whole && g.room > g.reserve {
		return slots
	}
	return min(slots, g.left, g.room)
}

// grow plans the way from what the pool has to what it wants, for all pods that come
// at once: first the free slots of attached ENIs, then those of ENIs that are busy
// or being attached, then new ENIs beside them.
func (pl *planner) grow(po *pool) growth {
	if po.ipv6 {
		return pl.grow6(po)
	}
	g := pl.wish(po)
	if g.left == 0 {
		return g
	}
	pl.fill(po, &g)
	pl.deferTo(po, &g)
	pl.attach(po, &g)
	if g.left > 0 {
		pl.waitOut(&g)
		pl.waitFor(po.coolEnd, AddressesCooling)
	}
	return g
}

// waitOut asks to be called again when an obstacle may be gone.
func (pl *planner) waitOut(g *growth) {
	for _, o := range g.obstacles {
		pl.waitFor(o.until, o.reason())
	}
}

// wish computes what the pool lacks and how much of it max-pods allows.
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
		// Resting addresses do not count: on a full node the pods that replace others
		// would wait for them.
		g.reserve = t.reserve(pl.p.MaxPods)
		g.room = po.units(pl.p.MaxPods + g.reserve - po.usable() - po.pending)
		if g.wanted && g.room <= 0 {
			g.blocked(obstacle{kind: atMaxPods})
			// At max-pods the targets are as good as met; waiting ADDs still hold
			// back every release.
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
		g.took(n)
		g.planned++
		e.busy, e.filled = true, true
		if po.prefixes {
			pl.growth = append(pl.growth, AssignPrefixes{ENI: e.ID, Count: n, Reason: g.why})
		} else {
			pl.growth = append(pl.growth, AssignAddresses{ENI: e.ID, Count: n, Reason: g.why})
		}
	}
}

// available is how many of n CIDRs can be asked for on an attached ENI.
func (pl *planner) available(e *eni, n int, d draw) (int, obstacle) {
	if until := pl.s.ENIBackoff[e.ID]; until.After(pl.now) {
		return 0, obstacle{kind: eniLate, subject: string(e.ID), until: until}
	}
	return pl.drawn(e.SubnetID, n, d)
}

// drawn books as many of n CIDRs as a subnet can give to an ENI that is already in
// it.
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

// deferTo leaves to ENIs with an operation in flight what their free slots can
// hold: those that are busy and those that are being attached. When the operation
// ends, the next plan fills them. A new ENI for it would be one too many, and since
// it would hold pods, it would stay.
func (pl *planner) deferTo(po *pool, g *growth) {
	for i := range po.enis {
		e := &po.enis[i]
		if !e.grows() || !e.busy || e.filled || !g.more() {
			continue
		}
		// Slots whose CIDRs are on their way out count as free.
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

// attach plans new ENIs, side by side.
func (pl *planner) attach(po *pool, g *growth) {
	for g.more() {
		if pl.s.AttachBackoff.After(pl.now) {
			g.blocked(obstacle{kind: attachLate, until: pl.s.AttachBackoff})
			return
		}
		device, ok := po.freeDevice()
		if !ok || pl.slots(po) <= 0 || pl.perENI == 0 {
			g.blocked(obstacle{kind: atMaxENIs})
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

// slots is how many ENIs the card can still take for pods.
func (pl *planner) slots(po *pool) int {
	n := at(pl.s.Limits.ENIsByCard, po.card)
	if pl.p.MaxENI > 0 {
		n = min(n, pl.p.MaxENI)
	}
	if pl.reserved(po) {
		n--
	}
	return n - po.attached
}

// reserved reports whether a slot of the card is kept for a trunk.
func (pl *planner) reserved(po *pool) bool {
	return pl.p.ReserveTrunkSlot && po.card == 0 && !po.trunk
}

// freeDevice is the lowest device index that nothing uses or will use.
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
