package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

func rm(path string) agent.Cmd { return agent.Cmd{Argv: []string{"/bin/rm", path}} }

// TestScaleUp starts 150 pods, 20 at a time, on a fresh m5.4xlarge: no ADD fails. It logs the
// duration and EC2 calls beside upstream's (docs/performance.md).
func TestScaleUp(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		latency  map[string]time.Duration
		env      map[string]string
		original string
		most     int // EC2 calls until all pods run
		enis     int // attached once the pool has settled, at most
	}{
		{"latency 0", nil, nil, "22.9 s, ~330 failed ADDs, 35 EC2 calls", 24, 7},
		{"realistic latency", fakeaws.RealisticLatency(), nil, "34.4 s, ~520 failed ADDs", 24, 7},
		{"realistic latency, prefixes", fakeaws.RealisticLatency(), map[string]string{"ENABLE_PREFIX_DELEGATION": "true"}, "47 s, ~760 failed ADDs", 24, 1},
		// With a small target and parallel pods, addresses are requested a few at a time, ENIs are not.
		{"warm IP target 1", fakeaws.RealisticLatency(), map[string]string{"WARM_IP_TARGET": "1"}, "not measured", 45, 6},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{Latency: row.latency})
			n := l.boot("m5.4xlarge", row.env)
			var pods []*node.Pod
			took := testenv.Took(func() { pods = l.mustAdd(n, "p", 150, 20) })
			calls := l.calls()
			t.Logf("150 pods in %.2f s, 0 failed, %s (original: %s)", took.Seconds(), calls, row.original)
			if calls.total > row.most {
				t.Errorf("%d EC2 calls, want at most %d", calls.total, row.most)
			}
			l.settled(n)
			if enis := len(l.world.ENIsOf(n.InstanceID)); enis > row.enis {
				t.Errorf("%d ENIs for 150 pods, want at most %d", enis, row.enis)
			}
			t.Logf("when the warm target is met too: %s", l.calls())
			l.del(n, pods, 20)
			l.nothingLeft(n)
		})
	}
}

type callCount struct {
	total int
	by    map[string]int
}

func (l *lab) calls() callCount {
	c := callCount{by: map[string]int{}}
	for _, call := range l.world.Calls() {
		c.total++
		c.by[call.Action]++
	}
	return c
}

// growth counts the calls that give a node ENIs or addresses. Others have times of their own: the
// sweep for leaked ENIs reads, and delete-on-termination is set while nothing else waits.
func (c callCount) growth() (n int) {
	for _, action := range []string{"AssignPrivateIpAddresses", "AssignIpv6Addresses", "CreateNetworkInterface", "AttachNetworkInterface"} {
		n += c.by[action]
	}
	return n
}

func (c callCount) String() string {
	var parts []string
	for action, n := range c.by {
		parts = append(parts, fmt.Sprintf("%s %d", action, n))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d EC2 calls (%s)", c.total, strings.Join(parts, ", "))
}
