package store

import (
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// A node that holds far more than its pods can use says so wherever its state is shown,
// unless it has a problem or uses IPv6.
func TestOverWarm(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		used, free int
		change     func(*document.NodeIPAM)
		want       string
	}{
		{used: 8, free: 90, want: WordOverWarm},
		{used: 44, free: 90, want: WordOverWarm},
		{used: 45, free: 90, want: fleet.CodeOK},
		{used: 0, free: 30, want: fleet.CodeOK},
		{used: 0, free: 31, want: WordOverWarm},
		{used: 0, free: 31, want: WordOverWarm, change: func(n *document.NodeIPAM) { n.Source = document.SourceV1 }},
		{used: 0, free: 31, want: "2 waiting", change: func(n *document.NodeIPAM) { n.Summary.WaitingADDs = new(2) }},
		{used: 0, free: 31, want: "cordoned", change: func(n *document.NodeIPAM) { n.Summary.Cordoned = new(true) }},
		{used: 0, free: 1 << 20, want: fleet.CodeOK, change: func(n *document.NodeIPAM) { n.Summary.IPFamily = "ipv6" }},
	} {
		sample := sample("a", t0, x.used, 0, x.free)
		if x.change != nil {
			x.change(&sample)
		}
		n := NewNode(sample)
		if n.Word != x.want {
			t.Errorf("%d used, %d free: %q, want %q", x.used, x.free, n.Word, x.want)
		}
	}
	down := sample("a", t0, 0, 0, 31)
	s := New()
	s.PutAt(down, t0)
	s.PutAt(failed("a", introspect.ReasonTimeout), after(60))
	if n := s.View().Node("a"); n.Word == WordOverWarm || n.Well() {
		t.Errorf("a stale node is %q", n.Word)
	}
}
