package main

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/node"
)

var (
	one = netip.MustParseAddr("10.0.0.1")
	two = netip.MustParseAddr("10.0.0.2")
)

// TestLedger: an address that two pods have at the same time is reported; having it one after
// the other is fine.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := newLedger()
	if err := l.enter("a", tenant{address: one}); err != nil {
		t.Error(err)
	}
	if err := l.enter("b", tenant{address: one}); err == nil || !strings.Contains(err.Error(), "both have 10.0.0.1") {
		t.Errorf("a doubled address: %v", err)
	}
	l.leave("a")
	l.leave("b")
	if err := l.enter("c", tenant{address: one}); err != nil {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	ours := func(a netip.Addr) bool { return a == one }
	for name, row := range map[string]struct {
		living map[string]tenant
		book   []node.Allocation
		want   []string
	}{
		"as it should": {map[string]tenant{"a": {one, "s"}}, []node.Allocation{{ContainerID: "s", IPv4: one}, {ContainerID: "gone", IPv4: two}}, nil},
		"kubelet's":    {map[string]tenant{"a": {address: one}}, []node.Allocation{{ContainerID: "any", IPv4: one}}, nil},
		"forgotten":    {map[string]tenant{"a": {one, "s"}}, nil, []string{"pod a has 10.0.0.1, which the checkpoint assigns to no pod"}},
		"another's":    {map[string]tenant{"a": {one, "s"}}, []node.Allocation{{ContainerID: "t", IPv4: one}}, []string{"pod a has 10.0.0.1, which the checkpoint assigns to t"}},
		"twice": {nil, []node.Allocation{{ContainerID: "s", IPv4: one}, {ContainerID: "t", IPv4: one}},
			[]string{"the checkpoint assigns 10.0.0.1 to both s and t"}},
		"not the node's": {map[string]tenant{"a": {two, "s"}}, []node.Allocation{{ContainerID: "s", IPv4: two}},
			[]string{"pod a has 10.0.0.2, which belongs to no ENI of the node"}},
	} {
		if got := compare(row.living, row.book, ours); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
