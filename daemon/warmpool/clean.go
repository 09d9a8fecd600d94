package warmpool

// clean plans the return of what pods can never use: empty ENIs and unused
// addresses that may not serve pods, and what secondary-IP or prefix mode left
// behind when the other took over. That occupies slots which growth may need, so it
// happens while the pool is short too, and does not wait for the scale-down spacing.
func (pl *planner) clean(po *pool) {
	if !pl.mayRelease() {
		return
	}
	for i := range po.enis {
		e := &po.enis[i]
		pl.waitFor(e.cleanable, AddressesCooling)
		switch {
		case e.busy:
		case e.serves:
			pl.release(e, !po.prefixes, e.misfits, pl.cleanGate, ModeChanged)
		case e.detachable():
			pl.leave(e, pl.cleanGate, e.useless())
		default:
			// One action per ENI: the other kind follows in the next plan.
			n := pl.release(e, po.prefixes, e.surplus, pl.cleanGate, e.useless())
			if n == 0 {
				pl.release(e, !po.prefixes, e.misfits, pl.cleanGate, e.useless())
			}
		}
	}
}

// useless says why an ENI does not serve pods.
func (e *eni) useless() Reason {
	if e.Excluded {
		return ENIExcluded
	}
	return PrimaryNotForPods
}
