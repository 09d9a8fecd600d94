package store

import (
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// TestTypeText: Kubernetes' type wins over a daemon that lies, and no type widens a table.
func TestTypeText(t *testing.T) {
	t.Parallel()
	n := sample("a", t0, 1, 0, 1)
	n.Summary.InstanceType = "m5.large\x1b[31m" + strings.Repeat("x", 200)
	if got := TypeText(NewNode(n)); show.Width(got) != longestType || !strings.HasPrefix(got, `m5.large\x1b`) {
		t.Errorf("%q", got)
	}
	n.Object = &document.NodeObject{InstanceType: "m5.xlarge"}
	if got := TypeText(NewNode(n)); got != "m5.xlarge" {
		t.Errorf("%q", got)
	}
}

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
		if got := n.Capacity(); show.Int(got) != show.Int(row.want) {
			t.Errorf("limit %s, max-pods %s: %s", show.Int(row.limit), show.Int(row.pods), show.Int(got))
		}
	}
}

// TestPercent: a node with prefixes is full at max-pods, and sorts like one.
func TestPercent(t *testing.T) {
	t.Parallel()
	node := func(assigned int) *Node {
		n := sample("n", t0, assigned, 0, 0)
		n.Summary.MaxPods = &introspect.MaxPods{Value: new(234)}
		n.Summary.Cards[0].Mode, n.Summary.Cards[0].AddressLimit = introspect.ModePrefix, new(3248)
		return NewNode(n)
	}
	for assigned, want := range map[int]string{63: "26%", 230: "98%"} {
		if got := text(t, node(assigned), "ip%"); got != want {
			t.Errorf("%d of max-pods 234: %s, want %s", assigned, got, want)
		}
	}
}
