package ipamd

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/cluster"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/testenv"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestFilterText(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"*nat\n:AWS-SNAT-CHAIN-0 - [0:0]\n-A AWS-SNAT-CHAIN-0 -j RETURN\n-A POSTROUTING -j AWS-SNAT-CHAIN-0\nCOMMIT\n*mangle\n-A PREROUTING -j X\nCOMMIT\n": "nat/AWS-SNAT-CHAIN-0, nat/POSTROUTING, mangle/PREROUTING",
		"flush chain ip aws-cni snat-mark\nadd rule ip aws-cni snat-mark counter\n":                                                                         "nft flush chain ip aws-cni snat-mark, nft add rule ip aws-cni snat-mark",
		"table ip aws-cni {\n\tchain snat-mark {\n\t}\n}\n":                                                                                                 "nft table ip aws-cni",
		"": "",
	} {
		if got := filterText(script); got != "packet filter rules differed: "+want {
			t.Errorf("%q: %q", script, got)
		}
	}
}

func TestInterfaceNumbers(t *testing.T) {
	t.Parallel()
	box := func(card int) ipam.Sandbox {
		return ipam.Sandbox{Network: "aws-cni", ContainerID: "c", IfName: "eth0", Interface: card}
	}
	all := []ipam.Assignment{
		{Sandbox: box(3), Pod: ipam.Pod{Interfaces: 2}}, {Sandbox: box(0), Pod: ipam.Pod{Interfaces: 2}},
		{Sandbox: ipam.Sandbox{ContainerID: "one"}},
	}
	if d := cmp.Diff(map[ipam.Sandbox]int{box(0): 0, box(3): 1}, interfaceNumbers(all)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestRepairs_Settled: what an ADD left out is repaired once that ADD must have ended.
func TestRepairs_Settled(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &repairs{asserter: &asserter{}, now: now}
	for _, tt := range []struct {
		age  time.Duration
		want bool
	}{{0, false}, {addGrace - 1, false}, {addGrace, true}} {
		a := ipam.Assignment{ENI: "eni-1", Pod: ipam.Pod{Namespace: "default", Name: "web-0"}, AssignedAt: now.Add(-tt.age)}
		if pod, ok := p.podOf(&a, nil); !ok || pod.Settled != tt.want {
			t.Errorf("%v after its ADD: %+v, %t", tt.age, pod, ok)
		}
	}
}

func TestAsserter_Notify(t *testing.T) {
	t.Parallel()
	a := &asserter{wake: make(chan struct{}, 1)}
	pod := netip.MustParseAddr("10.0.0.21")
	if l, due := a.take(time.Now()); l.any() || !due.IsZero() {
		t.Errorf("took %+v at first", l)
	}
	a.notice(hostnet.Notice{Kind: hostnet.ChangedPod, Pod: pod}, hostnet.Notice{Kind: hostnet.ChangedNode})
	if l, _ := a.take(time.Now().Add(-time.Second)); l.any() {
		t.Errorf("took %+v before it was due", l)
	}
	if l, due := a.take(time.Now()); !l.gone[pod] || !l.node || l.links || l.full || !due.IsZero() {
		t.Errorf("took %+v, the rest is due at %v", l, due)
	}
	now := time.Now()
	for range assertBurst { // repairs cause notices, too
		a.node.took(now)
	}
	a.notice(hostnet.Notice{Kind: hostnet.LostChanges})
	a.notice(hostnet.Notice{Kind: hostnet.ChangedLinks})
	l, due := a.take(time.Now())
	if !l.links || l.node || l.full {
		t.Errorf("took %+v", l)
	}
	if want := now.Add(assertSpacing); !due.Equal(want) {
		t.Errorf("a look that costs much is due %v after the last one", due.Sub(now))
	}
	if l, due := a.take(due); !l.full || !l.node || !due.IsZero() {
		t.Errorf("took %+v, the rest is due at %v", l, due)
	}
}

// TestAsserter_Added: many ADDs cause one look, a second after the last one, and within a
// limit after the first.
func TestAsserter_Added(t *testing.T) {
	t.Parallel()
	a := &asserter{wake: make(chan struct{}, 1)}
	now := time.Now()
	add := func(after time.Duration) { a.added(&cniwire.AddRequest{}, now.Add(after)) }
	add(0)
	add(500 * time.Millisecond)
	if l, due := a.take(now.Add(assertSettled)); l.any() || !due.Equal(now.Add(500*time.Millisecond+assertSettled)) {
		t.Errorf("took %+v, due %v after the first", l, due.Sub(now))
	}
	if l, due := a.take(now.Add(500*time.Millisecond + assertSettled)); !l.links || l.node || l.full || !due.IsZero() {
		t.Errorf("took %+v", l)
	}
	looks := 0
	for at := time.Duration(0); at < 10*assertLearn; at += 10 * time.Millisecond {
		add(at)
		if l, _ := a.take(now.Add(at)); l.any() {
			looks++
		}
	}
	if looks != 9 {
		t.Errorf("%d looks in %v of ADDs", looks, 10*assertLearn)
	}
}

// TestAsserter_Released: nothing of a branch pod is repaired between the DEL of its sandbox
// and the next ADD, even though the pod lives.
func TestAsserter_Released(t *testing.T) {
	t.Parallel()
	a := &asserter{branchPods: true, sandboxes: map[podName]branchSandbox{}, wake: make(chan struct{}, 1)}
	now, pod := time.Now(), cluster.Pod{Namespace: "default", Name: "web-0", UID: "u"}
	add := func(container string) {
		a.added(&cniwire.AddRequest{PodNamespace: pod.Namespace, PodName: pod.Name, ContainerID: container}, now)
	}
	del := func(container string) {
		a.released(&cniwire.DelRequest{PodNamespace: pod.Namespace, PodName: pod.Name, ContainerID: container}, now)
	}
	expect := func(when string, want bool) {
		t.Helper()
		if s, _ := a.sandbox(pod); s.released != want {
			t.Errorf("%s: released %t", when, s.released)
		}
	}
	expect("unknown", false)
	del("a") // an ADD from before the start
	expect("after its DEL", true)
	del("a")
	expect("after one more DEL", true)
	add("b")
	expect("after the next ADD", false)
	del("a")
	expect("after a late DEL of the old sandbox", false)
	del("b")
	expect("after its DEL", true)

	a.forgetSandboxes([]cluster.Pod{pod}, now.Add(sandboxKept))
	expect("that lives for long", true)
	a.forgetSandboxes(nil, now.Add(2*sandboxKept))
	expect("that is gone for long", false)
	for i := range sandboxesMost + 1 {
		a.noteSandbox(podName{"default", strconv.Itoa(i)}, branchSandbox{since: now})
	}
	if n := len(a.sandboxes); n > sandboxesMost {
		t.Errorf("%d pods are remembered", n)
	}
}

// TestRepairs_Report: a pass is reported in one event, and counted by kind; repeated
// removals of one object are reported once.
func TestRepairs_Report(t *testing.T) {
	t.Parallel()
	feed := introspectserver.NewFeed(time.Now())
	var log strings.Builder
	a := &asserter{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: metrics.New(metrics.Options{}), feed: feed, contested: map[string]bool{}}
	now := time.Now()
	for range 12 {
		p := &repairs{asserter: a, now: now}
		if p.later("pod-rule 10.0.0.1") {
			now = now.Add(p.wait)
			p = &repairs{asserter: a, now: now}
			if p.later("pod-rule 10.0.0.1") {
				t.Fatalf("not due after the wait it named, %v more", p.wait)
			}
		}
		p.noted("pod-rule 10.0.0.1", hostnet.Loss{Object: rules.ObjectPodRule, Text: "rule was missing"})
		p.noted("pod-rule 10.0.0.2", hostnet.Loss{Object: rules.ObjectPodRule, Text: "another was missing"})
		p.report()
	}
	if n := strings.Count(log.String(), "keeps being removed"); n != 1 || !strings.Contains(log.String(), "systemd-networkd") {
		t.Errorf("logged repeated removals %d times:\n%s", n, log.String())
	}
	if n := feed.Append(introspect.Event{}); n != 13 {
		t.Errorf("%d events of 12 passes", n-1)
	}
	families, err := a.metrics.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "awscni_host_state_repairs_total" && f.GetMetric()[0].GetCounter().GetValue() != 24 {
			t.Errorf("counted %v", f.GetMetric())
		}
	}
	(&repairs{asserter: a}).report() // nothing done, nothing reported
	if n := feed.Append(introspect.Event{}); n != 14 {
		t.Error("a pass that did nothing has an event")
	}
}

// TestAssertedFiles: a removal is noticed at once, even in a replaced directory.
func TestAssertedFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "aws-node")
	path := filepath.Join(dir, "ipam.json")
	looks, wrote := make(chan bool, 100), make(chan struct{}, 100)
	make1 := func() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	make1()
	f := &assertedFiles{
		log: quiet(), dirs: []string{dir}, listen: func() {},
		missing: func() (bool, bool) {
			select {
			case looks <- true:
			default:
			}
			return absent(path), false
		},
		write: func() { make1(); wrote <- struct{}{} },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.run(ctx); close(ended) }()
	<-looks // the watch is active
	for _, take := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return os.Rename(dir, dir+".moved") }, // in one step: otherwise files would be restored meanwhile
		func() error { return os.Rename(path, path+".moved") },
	} {
		if err := take(); err != nil {
			t.Fatal(err)
		}
		testenv.Receive(t, "the new file", wrote)
	}
	stop()
	<-ended
}

func TestCheckpoints_Lost(t *testing.T) {
	t.Parallel()
	c := openCheckpoints(filepath.Join(t.TempDir(), "ipam.json"))
	if c.lost() {
		t.Error("what was never there is lost")
	}
	if err := os.WriteFile(c.path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.wrote(c.path)
	if c.lost() {
		t.Error("lost though it is there")
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if !c.lost() || c.lost() {
		t.Error("a removal is reported once")
	}
}

func TestCulprits(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		rules.ObjectPodRule: "systemd-networkd", hostnet.ObjectENIRoute: "nm-cloud-setup", hostnet.ObjectPacketFilter: "firewalld",
		hostnet.ObjectSysctl: "tuned", objectSocket: "/run/aws-node",
	} {
		if !strings.Contains(knownCauses(object), want) {
			t.Errorf("%s: %q", object, knownCauses(object))
		}
	}
}
