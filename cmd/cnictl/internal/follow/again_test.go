package follow

import (
	"slices"
	"testing"

	"cnictl/daemon/fleet/document"
)

// TestNews_ANodeThatCameBack: a node that came back counts as new, not as gone.
func TestNews_ANodeThatCameBack(t *testing.T) {
	t.Parallel()
	var n news
	sample := func(name string) document.NodeIPAM {
		return document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}}
	}
	n.sampled(sample("a"))
	n.sampled(sample("b"))
	n.take()
	n.removed("a")
	n.removed("b")
	n.sampled(sample("a"))
	fresh, gone, back := n.take()
	if len(fresh) != 1 || !slices.Equal(gone, []string{"b"}) || !slices.Equal(back, []string{"a"}) {
		t.Errorf("read %v, gone %v, back %v", fresh, gone, back)
	}
	if fresh, gone, back = n.take(); len(fresh)+len(gone)+len(back) > 0 {
		t.Errorf("again: read %v, gone %v, back %v", fresh, gone, back)
	}
	n.removed("a")
	n.sampled(sample("a"))
	n.removed("a")
	if _, gone, back = n.take(); !slices.Equal(gone, []string{"a"}) || len(back) > 0 {
		t.Errorf("left again: gone %v, back %v", gone, back)
	}
}
