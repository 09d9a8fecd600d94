package kube

import "time"

// pauses are how long to wait after a failure: doubling, between half and the whole
// of a step, so that a fleet does not come back at once.
type pauses struct {
	first, most time.Duration
	chance      func(n time.Duration) time.Duration // in [0, n)

	// After blind and reread, and up to half of it more, a pod that is waited for is
	// requested again. Without an open watch, which is blind, nothing else shows a change;
	// with one only what it cannot show, such as a pod of another node, or what a dead
	// connection hides.
	blind, reread time.Duration
}

func defaultPauses(chance func(time.Duration) time.Duration) pauses {
	return pauses{first: time.Second, most: 30 * time.Second, chance: chance, blind: time.Second, reread: 5 * time.Second}
}

// after returns the pause after so many failures in a row, counted from 1.
func (p pauses) after(failures int) time.Duration {
	step := p.first
	for i := 1; i < failures && step < p.most; i++ {
		step *= 2
	}
	step = min(step, p.most)
	return step/2 + p.chance(step/2+1)
}
