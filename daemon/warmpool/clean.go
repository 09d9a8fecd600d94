package warmpool

// clean plans the return of what pods can never use: empty ENIs and unused
// addresses that may not serve pods, and what secondary-IP or prefix mode left
// behind when the other took over. That occupies slots which growth may need, so it
// happens while the pool is short too, and does not wait for the scale-down spacing.
//
// What the primary ENI holds under custom networking stays: a launch template may have
// put it there, for something else than pods.
func (pl *planner) clean(po *pool) {
	if !pl.mayRelease() {
		return
	}
	for i := range po.enis {
		e := &po.enis[i]
		if e.Primary && pl.p.CustomNetworking {
			continue
		}
		pl.waitFor(e.cleanable, AddressesCooling)
		switch {
		case e.busy:
		case e.serves:
			pl.release(e, !po.prefixes, e.misfits, pl.cleanGate, ModeChanged)
		case e.detachable() && !po.ipv6:
			pl.leave(e, pl.cleanGate, ENIExcluded)
		default:
			// One action per ENI: the other kind follows in the next plan.
			n := pl.release(e, po.prefixes, e.surplus, pl.cleanGate, ENIExcluded)
			if n == 0 {
				pl.release(e, !po.prefixes, e.misfits, pl.cleanGate, ENIExcluded)
			}
		}
	}
}
