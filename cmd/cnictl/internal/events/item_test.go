package events

import (
	"testing"

	"cnictl/tui/tables"
)

// TestOfOne: the name of the only node, the same in each row, is the first column to be dropped.
func TestOfOne(t *testing.T) {
	t.Parallel()
	drops := func(one bool) (node, others int) {
		all := tables.Events()
		if one {
			ofOne(all)
		}
		for _, c := range all {
			if c.Name == "node" {
				node = c.Drop
				continue
			}
			others = max(others, c.Drop)
		}
		return node, others
	}
	if node, _ := drops(false); node != 0 {
		t.Errorf("of several nodes the name may go: %d", node)
	}
	if node, others := drops(true); node <= others {
		t.Errorf("the name goes at %d, after %d", node, others)
	}
}
