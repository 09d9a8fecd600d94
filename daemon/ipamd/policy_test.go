package ipamd

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/internal/policyagent"
	"cnictl/daemon/keeper"
	"cnictl/testenv"
	"cnictl/testenv/aws/npa"
)

// policyBench is a backend with an agent that a test starts and stops.
type policyBench struct {
	*backend
	t      *testing.T
	socket string
	daemon *lonely
	end    context.CancelFunc // starts the daemon's shutdown
	done   <-chan struct{}    // closed when sendDeletions has returned

	mu    sync.Mutex
	later time.Duration // how far the owner's clock is ahead
	links map[string]int
	blind error // links cannot be listed
}

// link adds a pod's link to the host, or removes it.
func (x *policyBench) link(prefix, name string, there bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if link := netnames.HostVeth(prefix, "shop", name, 0); there {
		x.links[link] = 7
	} else {
		delete(x.links, link)
	}
}

// advance moves the clock and has the deletions checked.
func (x *policyBench) advance(d time.Duration) {
	x.mu.Lock()
	x.later += d
	x.mu.Unlock()
	x.policies.stir()
}

func newPolicyBench(t *testing.T) *policyBench {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &policyBench{t: t, socket: filepath.Join(dir, "s"), daemon: newLonely(t, func(n *node) { n.config.NetworkPolicyMode = "strict" }), links: map[string]int{}}
	x.daemon.owner.now = func() time.Time {
		x.mu.Lock()
		defer x.mu.Unlock()
		return time.Now().Add(x.later)
	}
	agent, err := policyagent.New(x.socket)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		x.daemon.owner.run(stop)
	}()
	go x.daemon.save()
	x.backend = &backend{owner: x.daemon.owner, log: slog.New(slog.DiscardHandler)}
	x.policies = newPolicies(agent, x.owner, x.log, x.daemon.metrics, "strict", func(context.Context) (map[string]int, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		return maps.Clone(x.links), x.blind
	})
	ending, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	x.end, x.done = end, done
	go func() {
		defer close(done)
		x.policies.sendDeletions(context.WithoutCancel(ending), ending)
	}()
	t.Cleanup(func() {
		end()
		<-done
		close(stop)
		<-ended
		agent.Close()
	})
	return x
}

func (x *policyBench) agent() *npa.Agent {
	x.t.Helper()
	a, err := npa.Start(npa.Options{Socket: x.socket})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(a.Close)
	return a
}

func (x *policyBench) policy(name, sandbox string, del bool) *cniwire.PolicyReply {
	r := &cniwire.PolicyRequest{PodName: name, PodNamespace: "shop", ContainerID: sandbox, Mode: "Strict", Interfaces: 2, Delete: del}
	if del {
		r.Mode, r.Interfaces = "", 0
	}
	return x.Policy(x.t.Context(), r)
}

// await waits until the agent has received that many calls.
func (x *policyBench) await(a *npa.Agent, calls int) {
	x.t.Helper()
	if err := a.Await(x.t.Context(), func(c []npa.Call) bool { return len(c) >= calls }); err != nil {
		x.t.Fatal(err)
	}
}

func (x *policyBench) waiting() int {
	x.policies.mu.Lock()
	defer x.policies.mu.Unlock()
	n := len(x.policies.waiting)
	if x.policies.sending != nil {
		n++
	}
	return n
}

// TestPolicy_Requests: the agent gets the requests that the plugin asks for, including
// deletions.
func TestPolicy_Requests(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	a := x.agent()
	if r := x.policy("web", "c1", false); !r.Success {
		t.Errorf("enforce: %+v", r)
	}
	if r := x.policy("web", "c1", true); !r.Success {
		t.Errorf("delete: %+v", r)
	}
	x.await(a, 2)
	want := []npa.Call{
		{Namespace: "shop", Name: "web", Mode: "Strict", Interfaces: 2, Success: true},
		{Delete: true, Namespace: "shop", Name: "web", Success: true},
	}
	if d := cmp.Diff(want, a.Calls()); d != "" {
		t.Error(d)
	}
}

// TestPolicy_Failures: an ADD that the agent fails is recorded with its cause; one whose
// address was already assigned is not counted twice.
func TestPolicy_Failures(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	absent := x.policy("web", "c1", false)
	if absent.Success || absent.Cause != string(cause.PolicyAgentUnreachable) || !strings.Contains(absent.Detail, x.socket) {
		t.Errorf("no agent: %+v", absent)
	}
	x.agent().SetFault(npa.Fault{Error: "One of the policy reconcilers is not ready"})
	refused := x.policy("web", "c1", false)
	if refused.Success || refused.Cause != string(cause.PolicyAgentRefused) || !strings.Contains(refused.Detail, "reconcilers") {
		t.Errorf("refused: %+v", refused)
	}
	type seen struct {
		failed, total int
		causes        map[string]int
	}
	got, _ := ask(x.owner, func(*keeper.Keeper, time.Time) seen {
		h := x.daemon.recorder.history
		return seen{*h.adds.Failed, h.adds.Total, h.clone().adds.Causes}
	})
	want := map[string]int{"policy-agent-unreachable": 1, "policy-agent-refused": 1}
	if d := cmp.Diff(want, got.causes); d != "" || got.failed != 2 || got.total != 0 {
		t.Errorf("%+v\n%s", got, d)
	}
}

// TestPolicy_AgentAway: DELs are answered while the agent is away, and sent once each when
// it is back.
func TestPolicy_AgentAway(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	for range 3 {
		for _, name := range []string{"a", "b", "c"} {
			if r := x.policy(name, "c-"+name, true); !r.Success {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	testenv.Eventually(x.t, "three deletions to wait", func() bool { return x.waiting() == 3 })
	a := x.agent()
	x.await(a, 3)
	testenv.Eventually(x.t, "none to wait", func() bool { return x.waiting() == 0 })
	got := map[string]int{}
	for _, c := range a.Calls() {
		if !c.Delete || !c.Success {
			t.Errorf("%+v", c)
		}
		got[c.Name]++
	}
	if d := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1}, got); d != "" {
		t.Error(d)
	}
}

// TestPolicy_NameLivesAgain: a StatefulSet's pod has its name again before the agent learned
// of the deletion, or before its last sandbox's DEL came.
func TestPolicy_NameLivesAgain(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	x.policy("web-0", "c1", true)
	testenv.Eventually(x.t, "the deletion to wait", func() bool { return x.waiting() == 1 })
	a := x.agent()
	if r := x.policy("web-0", "c2", false); !r.Success {
		t.Errorf("enforce: %+v", r)
	}
	x.policy("web-0", "c1", true)                                     // late, or repeated
	if add := x.Add(t.Context(), addRequest("web-1")); !add.Success { // another sandbox has an address, as after a restart
		t.Fatalf("%+v", add)
	}
	x.policy("web-1", "gone", true)
	x.policy("other", "c9", true)
	testenv.Eventually(x.t, "none to wait", func() bool { return x.waiting() == 0 })
	if d := cmp.Diff(map[string]string{"shop/web-0": "Strict"}, a.Pods()); d != "" {
		t.Error(d)
	}
	last := a.Calls()[len(a.Calls())-1]
	if !last.Delete || last.Name != "other" {
		t.Errorf("last: %+v", last)
	}
	for _, c := range a.Calls() {
		if c.Name == "web-1" {
			t.Errorf("notified of a pod that lives: %+v", c)
		}
	}
}

// TestPolicy_GivenUp: an agent that never returns is not retried forever, and no more
// deletions wait for it than pods fit on a node.
func TestPolicy_GivenUp(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	x.policy("web", "c1", true)
	testenv.Eventually(x.t, "the deletion to wait", func() bool { return x.waiting() == 1 })
	x.advance(deletionPatience)
	testenv.Eventually(x.t, "it to be given up", func() bool { return x.waiting() == 0 })
	for i := range deletionsMost + 10 {
		x.policy(strings.Repeat("x", i), "c", true)
	}
	if n := x.waiting(); n > deletionsMost+1 || n < deletionsMost {
		t.Errorf("%d wait", n)
	}
}

// TestPolicy_End: waiting deletions are sent before the daemon ends, if the agent is there,
// and later ones are sent at once.
func TestPolicy_End(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	a := x.agent()
	a.SetFault(npa.Fault{Wait: 10 * time.Millisecond, Deletes: true})
	for _, name := range []string{"a", "b", "c"} {
		x.policy(name, "c", true)
	}
	x.end()
	<-x.done
	x.policy("late", "c", true)
	if n := len(a.Calls()); n != 4 {
		t.Errorf("notified %d times: %+v", n, a.Calls())
	}
}

// TestPolicy_EndWithoutAgent: the daemon's end does not wait for an absent agent.
func TestPolicy_EndWithoutAgent(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	x.policy("a", "c", true)
	x.policy("b", "c", true)
	x.end()
	<-x.done
	if n := x.waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// TestPolicy_Off: with no mode, or "none", the agent is not called.
func TestPolicy_Off(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{"": false, "none": false, "None": false, "strict": true, "Standard": true} {
		if got := policyOn(mode); got != want {
			t.Errorf("%q: %v", mode, got)
		}
	}
	b := &backend{}
	if r := b.Policy(t.Context(), &cniwire.PolicyRequest{Delete: true}); !r.Success {
		t.Errorf("%+v", r)
	}
}

// TestPolicy_VoidsWaiting: a deletion queued behind another is void once its pod's name
// lives again.
func TestPolicy_VoidsWaiting(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	x.policy("a", "c", true)
	x.policy("b", "c", true)
	testenv.Eventually(x.t, "two to wait", func() bool { return x.waiting() == 2 })
	x.policies.markLive(t.Context(), podName{"shop", "b"}, "c2")
	if n := x.waiting(); n != 1 {
		t.Errorf("%d wait", n)
	}
}

// deletions returns the pods whose deletion an agent received.
func deletions(a *npa.Agent) (names []string) {
	for _, c := range a.Calls() {
		if c.Delete {
			names = append(names, c.Name)
		}
	}
	return names
}

// TestPolicy_RestartKeepsLiving: a restart forgets pods with a branch ENI. A second DEL for
// an earlier sandbox, of the same pod or of another with its name, must not remove the
// running pod's policies. Its link shows that it runs.
func TestPolicy_RestartKeepsLiving(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	a := x.agent()
	for _, prefix := range []string{"vlan", "eni", ""} {
		x.link(prefix, "web"+prefix, true)
		if r := x.policy("web"+prefix, "old", true); !r.Success {
			t.Errorf("%q: %+v", prefix, r)
		}
	}
	x.link("dummy", "gone", true) // no host link
	x.policy("gone", "old", true)
	x.await(a, 1)
	testenv.Eventually(x.t, "the rest to be put off", func() bool { return x.waiting() == 3 })
	x.link("vlan", "webvlan", false) // its own DEL: the namespace is going away
	if r := x.policy("webeni", "new", false); !r.Success {
		t.Errorf("enforce: %+v", r)
	}
	x.advance(deletionMost)
	x.await(a, 3)
	if d := cmp.Diff([]string{"gone", "webvlan"}, deletions(a)); d != "" {
		t.Error(d)
	}
	x.advance(deletionPatience)
	testenv.Eventually(x.t, "none to wait for a pod that lives", func() bool { return x.waiting() == 0 })
	if d := cmp.Diff([]string{"gone", "webvlan"}, deletions(a)); d != "" {
		t.Error(d)
	}
}

// TestPolicy_LinksUnknown: while running pods are unknown, no deletion is sent, not even at
// shutdown.
func TestPolicy_LinksUnknown(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	x.blind = errors.New("no buffer space available")
	a := x.agent()
	x.policy("web", "c1", true)
	testenv.Eventually(x.t, "it to be put off", func() bool {
		x.policies.mu.Lock()
		defer x.policies.mu.Unlock()
		return len(x.policies.waiting) == 1 && !x.policies.waiting[0].after.IsZero()
	})
	x.policy("web", "c1", true) // repeated
	if n := x.waiting(); n != 1 {
		t.Errorf("%d wait", n)
	}
	x.end()
	<-x.done
	x.policy("late", "c1", true)
	if n := len(a.Calls()); n != 0 {
		t.Errorf("notified of %v", deletions(a))
	}
}

// TestPolicy_SureAfterUnsure: a DEL of what is known to be the last sandbox does not wait
// for the link, even if an earlier one does.
func TestPolicy_SureAfterUnsure(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	x.link("vlan", "web", true)
	x.policy("web", "c1", true)
	testenv.Eventually(x.t, "it to be put off", func() bool {
		x.policies.mu.Lock()
		defer x.policies.mu.Unlock()
		return len(x.policies.waiting) == 1 && !x.policies.waiting[0].after.IsZero()
	})
	x.policies.mu.Lock()
	x.policies.live[podName{"shop", "web"}] = "c2"
	x.policies.mu.Unlock()
	x.policy("web", "c2", true)
	a := x.agent()
	x.await(a, 1)
	testenv.Eventually(x.t, "none to wait", func() bool { return x.waiting() == 0 })
}

// TestPolicy_RemembersTheLiving: only living pods are remembered.
func TestPolicy_RemembersTheLiving(t *testing.T) {
	t.Parallel()
	x := newPolicyBench(t)
	pod := func(i int) podName { return podName{"shop", "p" + strconv.Itoa(i)} }
	x.link("eni", pod(3).name, true)
	for i := range liveMost {
		x.policies.markLive(t.Context(), pod(i), "c")
	}
	x.policies.markLive(t.Context(), pod(liveMost), "c")
	if d := cmp.Diff(map[podName]string{pod(3): "c", pod(liveMost): "c"}, x.policies.live, cmp.AllowUnexported(podName{})); d != "" {
		t.Error(d)
	}
	x.policy(pod(3).name, "older", true)
	if n := x.waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
}
