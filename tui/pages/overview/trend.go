package overview

import (
	"math"
	"time"

	"cnictl/daemon/fleet/store"
)

// trendSpan is how much time the trend shows.
const trendSpan = 15 * time.Minute

// trend are the addresses in use over the last 15 minutes, oldest first, a value a cell:
// the last sample in it. A cell without one is a gap, but for a cell between two
// samples of a node that is read seldom. The scale is fixed: from none to all that the
// node can hold.
func trend(n *store.Node, cells int) (values []float64, top float64) {
	values = make([]float64, cells)
	for i := range values {
		values[i] = math.NaN()
	}
	if n.Limit != nil {
		top = float64(*n.Limit)
	}
	if len(n.History) == 0 {
		return values, top
	}
	newest := n.History[len(n.History)-1].At()
	per := trendSpan / time.Duration(cells)
	for _, p := range n.History {
		back := int(newest.Sub(p.At()) / per)
		if back < 0 || back >= cells {
			continue
		}
		v := math.NaN()
		if !p.Gap() {
			v = float64(p.Assigned)
		}
		values[cells-1-back] = v
	}
	return values, top
}
