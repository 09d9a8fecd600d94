package warmpool

// clean plans the release of what pods can never use: empty ENIs and unused addresses that may
// not serve pods, and what one of secondary-IP and prefix mode left behind when the other took
// over. These occupy slots that growth may need, so clean also runs while the pool is short,
// and does not wait for the scale-down spacing.
//
// The addresses of the primary ENI under custom networking stay: a launch template may have
// put them there for something other than pods.
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
