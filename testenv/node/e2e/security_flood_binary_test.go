package e2e_test

import (
	"context"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// TestFlood: a pod that floods the metrics with requests that do not end makes the daemon hold
// little, and other pods start.
func TestFlood(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	if got := l.scrape(n); !strings.Contains(got, "\ngo_gc_gomemlimit_bytes 1.34217728e+08\n") {
		t.Errorf("the daemon has no memory limit: %s", regexp.MustCompile(`go_gc_gomemlimit_bytes .*`).FindString(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	attack.Go(func() { n.NS.Flood(ctx, netip.MustParseAddrPort("127.0.0.1:61678"), 300) })
	before := l.residentPeak(n)
	pods := l.mustAdd(n, "p", 10, 2)
	l.del(n, pods, 2)
	held := l.residentPeak(n) - before
	cancel()
	attack.Wait()
	t.Logf("the daemon's peak rose by %d KiB", held)
	if held > 40<<10 {
		t.Errorf("300 unfinished requests make the daemon hold %d KiB", held)
	}
}

// residentPeak returns the most memory that the daemon has held, in KiB.
func (l *lab) residentPeak(n *node.Node) int {
	l.t.Helper()
	status := l.procfs(n, n.DaemonPID(), "status")
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(status)
	if m == nil {
		l.t.Fatalf("no VmHWM in %s", status)
	}
	kib, _ := strconv.Atoi(m[1])
	return kib
}
