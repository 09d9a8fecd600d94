package warmpool

// grow6 plans what an IPv6 pool lacks: a /80 on each ENI that serves pods, and an ENI
// with one where none can. No node runs out of a /80, so that is all, and no target
// asks for more.
func (pl *planner) grow6(po *pool) growth {
	g := growth{why: IPv6Prefix, room: noBound}
	if toServe := po.unserved(); toServe > 0 {
		g.why = po.served()
	} else if pl.frozen {
		return g
	}
	if po.waiting > 0 && po.total == 0 {
		po.writeOff()
	}
	g.left = po.bare(&g)
	g.wanted = g.left > 0
	pl.fill(po, &g)
	// A further ENI is no way around one that cannot get its /80 now.
	if !g.wanted && !po.settled(&g) {
		g.left, g.wanted = 1, true
		pl.attach(po, &g)
	}
	pl.waitOut(&g)
	return g
}

// writeOff takes no account of /80s that EC2 does not show. Pods may live in one that it
// has taken away, so that it stays in the book, and those that wait would forever.
func (po *pool) writeOff() {
	for i := range po.enis {
		e := &po.enis[i]
		e.cidrs -= e.quarantined
	}
}

// bare counts the ENIs that lack a /80.
func (po *pool) bare(g *growth) int {
	n := 0
	for i := range po.enis {
		switch e := &po.enis[i]; {
		case !e.grows() || e.cidrs+e.incoming > 0:
		case e.busy:
			g.deferred = true
		default:
			n++
		}
	}
	return n
}

// settled reports whether some ENI of the card has a /80 or will get one. An ENI that
// EC2 does not show counts until pods wait: it may be EC2's list that is wrong.
func (po *pool) settled(g *growth) bool {
	if po.total > 0 || po.attaching {
		g.deferred = g.deferred || po.attaching
		return true
	}
	for i := range po.enis {
		e := &po.enis[i]
		if e.grows() || e.Quarantined() && po.waiting == 0 {
			return true
		}
	}
	return false
}
