package main

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

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
	before := l.living(nil)
	if err := l.enter("b", tenant{address: one}); err == nil || !strings.Contains(err.Error(), "both have 10.0.0.1") {
		t.Errorf("a doubled address: %v", err)
	}
	l.leave("a")
	l.leave("b")
	if err := l.enter("c", tenant{address: one}); err != nil {
		t.Error(err)
	}
	if got := l.living(before); len(got) > 0 {
		t.Errorf("stayed %v, want none", got)
	}
	if got := l.living(l.living(nil)); got["c"].address != one {
		t.Errorf("stayed %v, want c", got)
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

func TestTally(t *testing.T) {
	t.Parallel()
	c := newTally()
	for i := range 100 {
		c.up(time.Duration(i+1) * time.Second)
		c.gone()
	}
	for _, text := range []string{"sandbox 0123456789abcdef of pod-1-2: 10.0.0.7", "sandbox fedcba9876543210 of pod-3-4: 10.0.0.8"} {
		c.retry(errors.New(text))
	}
	if got, want := c.refusals(), []string{"2 x sandbox ID of POD: IP"}; !slices.Equal(got, want) {
		t.Errorf("refusals %q, want %q", got, want)
	}
	if got, want := c.line(50*time.Second, 200), "100/200 pods, 2.0/s, start p50 51s p99 1m40s, 2 tries failed, 0 pods failed, 0 kills"; got != want {
		t.Errorf("line\n%s\nwant\n%s", got, want)
	}
	if got := c.problems(); len(got) > 0 {
		t.Errorf("problems %q, want none: all pods came up in the end", got)
	}
	c.never("pod-1-2", errors.New("no"))
	c.mistake("wrong %d", 1)
	c.mistake("wrong %d", 1)
	if got, want := c.problems(), []string{"pod-1-2: no", "wrong 1 (seen 2 times)"}; !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

func TestGrown(t *testing.T) {
	t.Parallel()
	fresh := held{rss: 30 << 10, files: 20}
	if err := (held{rss: 50 << 10, files: 30}).grown(fresh); err != nil {
		t.Error(err)
	}
	for _, h := range []held{{rss: 90 << 10, files: 20}, {rss: 30 << 10, files: 60}} {
		if h.grown(fresh) == nil {
			t.Errorf("%s after %s is fine", h, fresh)
		}
	}
}

// TestNameOf: every third pod has the previous one's name, and no others share one.
func TestNameOf(t *testing.T) {
	t.Parallel()
	last := map[string]int{}
	for slot := range 4 {
		for round := range 12 {
			name := nameOf(slot, round)
			before, seen := last[name]
			if seen != (round%3 == 2) || seen && before != round-1 {
				t.Errorf("pod %d of slot %d is %s, as the one of round %d", round, slot, name, before)
			}
			last[name] = round
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"--quick", "--bin", "/b"})
	if err != nil || o.sandboxes != 200 || o.kubelet != 30 || o.parallel != 30 || o.killEvery != 5*time.Second || o.bin != "/b" {
		t.Errorf("quick: %+v, %v", o, err)
	}
	o, err = parse([]string{"--cri", "7", "--kubelet", "0", "--parallel", "3", "--kill-every", "1s"})
	if err != nil || o.sandboxes != 7 || o.kubelet != 0 || o.parallel != 3 || o.killEvery != time.Second {
		t.Errorf("given: %+v, %v", o, err)
	}
	for _, bad := range []struct{ args, says string }{
		{"--cri 0 --kubelet 0", "no pods"},
		{"--cri -1", "no pods"},
		{"--parallel 0", "from 1 to 100"},
		{"--within 0s", "not a time"},
		{"more", `unknown argument "more"`},
	} {
		if _, err := parse(strings.Fields(bad.args)); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: error %v, want %q", bad.args, err, bad.says)
		}
	}
}
