package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/fleet/document"
)

func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ limit, pods, want *int }{
		{new(896), new(110), new(110)}, // prefixes hold more addresses than pods may use
		{new(27), new(29), new(27)},
		{new(27), nil, new(27)},
		{new(27), new(0), new(27)},
		{nil, new(29), nil},
	} {
		read := sample("a", t0, 1, 0, 1)
		read.Summary.MaxPods, read.Summary.Cards[0].AddressLimit = nil, row.limit
		read.Object = &document.NodeObject{MaxPods: row.pods}
		n := NewNode(read)
		if got := n.Capacity(); !cmp.Equal(got, row.want) {
			t.Error(cmp.Diff(got, row.want), *n.Object)
		}
	}
}
