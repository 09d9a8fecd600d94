package sim

import (
	"slices"
	"time"
)

// patience is how long pods without an address go on trying in the calm.
const patience = 15 * time.Minute

// settle ends the trouble and lets the world come to rest.
func (w *World) settle() {
	w.calm = true
	w.after(patience, func() {
		for _, n := range w.nodes {
			for _, p := range slices.Clone(n.pods) {
				if !p.box.alive {
					p.doom()
				}
			}
		}
	})
	w.runUntil(w.clock + w.Scenario.Rest)
}
