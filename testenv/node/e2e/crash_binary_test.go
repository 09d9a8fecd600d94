package e2e_test

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

const checkpointPath = "/var/run/aws-node/ipam.json"

func (l *lab) kill(n *node.Node, s syscall.Signal) {
	l.t.Helper()
	ctx := testenv.Context(l.t)
	if _, err := n.StopDaemon(ctx, s); err != nil {
		l.t.Fatal(err)
	}
}

// signal sends the daemon a signal that does not end it.
func (l *lab) signal(n *node.Node, s syscall.Signal) {
	l.t.Helper()
	if err := n.SignalDaemon(s); err != nil {
		l.t.Fatal(err)
	}
}

// TestRestart kills the daemon; the next daemon must know every pod.
func TestRestart(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	pods := l.mustAdd(n, "p", 12, 4)
	l.kill(n, syscall.SIGKILL)
	// Remove the rules of a running pod, and add rules for an address that no pod has had.
	wiped := pods[0]
	for _, argv := range [][]string{
		{"rule", "del", "prio", "512", "to", wiped.IP.String()},
		{"rule", "add", "prio", "512", "to", "10.1.15.250", "lookup", "main"},
		{"rule", "add", "prio", "1536", "from", "10.1.15.250", "lookup", "7"},
	} {
		if r, err := n.Exec(agent.Cmd{Argv: append([]string{"/usr/sbin/ip"}, argv...)}); err != nil || r.Code != 0 {
			t.Fatalf("ip %v: %v: %s", argv, err, r.Stderr)
		}
	}
	// A pod is deleted while no daemon runs: the plugin cleans up without it.
	gone := pods[len(pods)-1]
	l.del(n, []*node.Pod{gone}, 1)
	pods = pods[:len(pods)-1]
	l.age(n) // the link of a younger pod may be about to be created
	l.start(n, nil)

	held := l.assigned(n)
	for _, p := range pods {
		if !held[p.IP] {
			t.Errorf("%s is lost: %s is not assigned after the restart", p.Name, p.IP)
		}
		if err := n.Ping(p.IP, testenv.Left(t)); err != nil {
			t.Errorf("%s after the restart: %v", p.Name, err)
		}
	}
	state, err := n.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	if want := "to " + wiped.IP.String() + " lookup main"; !strings.Contains(state.Rules, want) {
		t.Errorf("rule %q was not restored:\n%s", want, state.Rules)
	}
	if strings.Contains(state.Rules, "10.1.15.250") {
		t.Errorf("rules of a pod that never was are still there:\n%s", state.Rules)
	}
	// The kernel removes a pod's link shortly after its namespace: a daemon that starts in between
	// still sees the link, and checks again.
	testenv.Eventually(l.t, "the address of a pod that went meanwhile is free", func() bool { return !l.assigned(n)[gone.IP] })
	more := l.mustAdd(n, "more", 3, 1)
	for _, p := range more {
		for _, q := range pods {
			if p.IP == q.IP {
				t.Errorf("%s was given twice, to %s and %s", p.IP, p.Name, q.Name)
			}
		}
	}
	l.del(n, append(pods, more...), 4)
	l.nothingLeft(n)
}

// assigned returns the addresses that the daemon has assigned.
func (l *lab) assigned(n *node.Node) map[netip.Addr]bool {
	l.t.Helper()
	var enis introspect.ENIs
	l.get(n, introspect.PathENIs, &enis)
	out := map[netip.Addr]bool{}
	for _, e := range enis["0"].ENIs {
		for _, c := range e.AvailableIPv4Cidrs {
			for _, a := range c.IPAddresses {
				if a.IPAMKey.NetworkName != "" {
					out[netip.MustParseAddr(a.Address)] = true
				}
			}
		}
	}
	return out
}

// TestDamagedCheckpoint gives the daemon damaged files: the pods stay, the file is kept under
// another name and recorded as unreadable, no address is assigned twice, and DEL still works.
func TestDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(whole string) string{
		"truncated": func(s string) string { return s[:len(s)/2] },
		"empty":     func(string) string { return "" },
		"foreign":   func(string) string { return `{"version":"vpc-cni-ipam/9","allocations":[]}` },
		"missing":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, fakeaws.Options{})
			n := l.boot("m5.large", nil)
			pods := l.mustAdd(n, "p", 5, 2)
			l.kill(n, syscall.SIGKILL)
			l.damage(n, damage)
			l.start(n, nil)
			var summary introspect.Summary
			l.get(n, introspect.PathSummary, &summary)
			unreadable := slices.ContainsFunc(summary.LastErrors, func(e introspect.LastError) bool { return e.Cause == string(cause.CheckpointUnreadable) })
			if unreadable == (name == "missing") {
				t.Errorf("errors of the start: %+v", summary.LastErrors)
			}
			held := l.assigned(n)
			for _, p := range pods {
				if !held[p.IP] {
					t.Errorf("%s lost its address %s", p.Name, p.IP)
				}
			}
			more := l.mustAdd(n, "more", 8, 4)
			for _, m := range more {
				if held[m.IP] {
					t.Errorf("%s was given to %s while its pod lives", m.IP, m.Name)
				}
			}
			l.del(n, append(pods, more...), 4)
			l.nothingLeft(n)
		})
	}
}

func (l *lab) damage(n *node.Node, change func(string) string) {
	l.t.Helper()
	f, err := n.Open(checkpointPath, os.O_RDWR, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if change == nil {
		if _, err := n.Exec(rm(checkpointPath)); err != nil {
			l.t.Fatal(err)
		}
		return
	}
	whole := make([]byte, 1<<20)
	count, err := f.Read(whole)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := f.Truncate(0); err != nil {
		l.t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(change(string(whole[:count]))), 0); err != nil {
		l.t.Fatal(err)
	}
}

// TestSIGTERM: the daemon fails a waiting ADD with the reason, and exits in time.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	// An attach takes longer than the test, so the ADD must wait.
	l := newLab(t, fakeaws.Options{Latency: map[string]time.Duration{"CreateNetworkInterface": 10 * time.Minute}})
	n := l.boot("t3.small", map[string]string{"CNI_ADD_WAIT": "60s"})
	l.mustAdd(n, "p", 3, 1)
	var group sync.WaitGroup
	var failure error
	group.Go(func() { _, failure = n.AddPod(node.PodSpec{Namespace: "default", Name: "waits"}) })
	testenv.Eventually(l.t, "an ADD that waits", func() bool {
		var s introspect.Summary
		l.get(n, introspect.PathSummary, &s)
		return s.WaitingADDs != nil && *s.WaitingADDs == 1
	})
	// The pod's grace is 10 s. A busy machine may need longer, but not as long as what it waits for.
	testenv.Within(t, 45*time.Second, "the daemon's end", func() { l.kill(n, syscall.SIGTERM) })
	group.Wait()
	var plugin *node.PluginError
	if !errors.As(failure, &plugin) || !strings.Contains(plugin.Details, "daemon-terminating") {
		t.Errorf("waiting ADD ended with %v, want the cause daemon-terminating", failure)
	}
}
