package store

import (
	"testing"

	"cnictl/daemon/fleet/document"
)

// The trend is relative to what the node can hold, or to what it has held if that is
// unknown, and not to its pods, which would always fill it.
func TestNode_TrendScale(t *testing.T) {
	t.Parallel()
	limit := 20
	for name, c := range map[string]struct {
		limit *int
		want  float64
	}{"known": {&limit, 0.25}, "not known": {nil, 0.5}} {
		n := &Node{NodeIPAM: document.NodeIPAM{}, capacity: c.limit, History: History{{Unix: 1000, Assigned: -1}, {Unix: 1060, Assigned: 5, Cooling: 1, Free: 4}}}
		got := n.Trend(3)
		if last := got[len(got)-1]; last != c.want {
			t.Errorf("%s: %v, want %v at the end", name, got, c.want)
		}
	}
}
