package warmpool

// grow6 plans what an IPv6 pool lacks: a /80 on each ENI that serves pods, or an ENI with one
// if no ENI can have one. No node uses up a /80, so that is enough, and targets ask for no more.
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
	// Another ENI does not help if one cannot get its /80 now.
	if !g.wanted && !po.settled(&g) {
		g.left, g.wanted = 1, true
		pl.attach(po, &g)
	}
	pl.waitOut(&g)
	return g
}

// writeOff ignores /80s that EC2 does not show. If EC2 has taken one away, pods may still run in
// it, so it stays in the book, and waiting pods would wait for it forever.
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

// settled reports whether some ENI of the card has a /80 or will get one. An ENI that EC2 does
// not show counts until pods wait: EC2's list may be wrong.
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
