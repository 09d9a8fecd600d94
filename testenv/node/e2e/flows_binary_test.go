package e2e_test

import (
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// flows counts the entries of an address in the node's connection tracking.
func (l *lab) flows(n *node.Node, a netip.Addr) (count int) {
	l.t.Helper()
	r, err := n.Exec(agent.Cmd{Argv: []string{"/bin/cat", "/proc/net/nf_conntrack"}})
	if err != nil || r.Code != 0 {
		l.t.Fatalf("read connection tracking: %v, %s", err, r.Stderr)
	}
	for line := range strings.Lines(string(r.Stdout)) {
		if words := strings.Fields(line); slices.Contains(words, "src="+a.String()) || slices.Contains(words, "dst="+a.String()) {
			count++
		}
	}
	return count
}

// TestFlows: the daemon deletes the node's connection tracking entries of a pod that ended, and says
// so, and those of addresses without a pod when it starts again. Other pods keep theirs.
func TestFlows(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	env := map[string]string{"IP_COOLDOWN_PERIOD": "2", "MAX_ENI": "1"}
	n := l.boot("m5.large", env)
	// By default a ping's entry lives for 30 s, which a slow start exceeds.
	if r, err := n.Exec(agent.Cmd{Argv: []string{"/bin/sh", "-euc", "echo 3600 > /proc/sys/net/netfilter/nf_conntrack_icmp_timeout"}}); err != nil || r.Code != 0 {
		t.Fatalf("let entries live: %v, %s", err, r.Stderr)
	}
	pods := l.mustAdd(n, "web", 2, 1)
	gone, stays := pods[0], pods[1]
	if err := n.PingFrom(gone, vpc.Outside.Addr(), testenv.Left(t)); err != nil {
		t.Fatal(err)
	}
	if l.flows(n, gone.IP) == 0 {
		t.Fatal("the pod's ping is not in connection tracking")
	}
	l.del(n, pods[:1], 1)
	testenv.Eventually(l.t, "no entry of the ended pod", func() bool { return l.flows(n, gone.IP) == 0 })
	testenv.Eventually(l.t, "the event", func() bool {
		var events introspect.NodeEvents
		l.get(n, introspect.PathEvents, &events)
		return slices.ContainsFunc(events.Items, func(e introspect.Event) bool { return e.Kind == introspect.EventFlowsDeleted && e.Message != "" })
	})
	if text := l.scrape(n); !strings.Contains(text, "awscni_conntrack_passes_total{result=\"success\"}") || strings.Contains(text, "awscni_conntrack_deleted_total 0\n") {
		t.Error("the metrics do not count it")
	}

	if _, err := n.StopDaemon(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := n.PingFrom(stays, vpc.Outside.Addr(), testenv.Left(t))
	if n.Ping(gone.IP, 100*time.Millisecond) == nil { //realtime: nothing answers
		t.Error("an ended pod answers")
	}
	if err != nil || l.flows(n, gone.IP) == 0 || l.flows(n, stays.IP) == 0 {
		t.Fatalf("pings are not in connection tracking: %v", err)
	}
	l.start(n, env)
	if got := l.flows(n, gone.IP); got != 0 {
		t.Errorf("%d entries of an address without a pod after a restart", got)
	}
	if l.flows(n, stays.IP) == 0 {
		t.Error("a living pod has lost its connection")
	}
}
