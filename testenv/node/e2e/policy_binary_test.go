package e2e_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/node"
)

// policyLab is a node whose daemon notifies a stand-in for the network policy agent.
type policyLab struct {
	*lab
	n      *node.Node
	socket string
}

func newPolicyLab(t *testing.T, mode string) *policyLab {
	t.Helper()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	x := &policyLab{lab: l, n: l.node(i.ID)}
	x.socket = filepath.Join(x.n.Dir, "npa.sock")
	l.run(x.n, "/bin/ln", "-s", x.socket, "/var/run/aws-node/npa.sock")
	l.start(x.n, map[string]string{"NETWORK_POLICY_ENFORCING_MODE": mode})
	return x
}

// agent starts a stand-in that looks for the host links of pods in the node.
func (x *policyLab) agent() *npa.Agent {
	x.t.Helper()
	a, err := npa.Start(npa.Options{Socket: x.socket, Netns: x.n.NS})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(a.Close)
	return a
}

func (x *policyLab) await(a *npa.Agent, wanted func([]npa.Call) bool) {
	x.t.Helper()
	ctx := testenv.Context(x.t)
	if err := a.Await(ctx, wanted); err != nil {
		x.t.Fatal(err)
	}
}

// policy sends a policy request to the daemon as the plugin does.
func (x *policyLab) policy(r *cniwire.PolicyRequest) *cniwire.PolicyReply {
	x.t.Helper()
	reply, err := cniwire.DecodePolicyReply(x.wire(x.n, cniwire.AppendPolicyRequest(nil, r)))
	if err != nil {
		x.t.Fatal(err)
	}
	return reply
}

func callsOf(calls []npa.Call, name string) (out []npa.Call) {
	for _, c := range calls {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// TestPolicy: the agent is notified of a pod once its links exist, and once it is deleted.
func TestPolicy(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "Strict")
	a := x.agent()
	p, err := x.n.AddPod(node.PodSpec{Namespace: "default", Name: "web-0"})
	if err != nil {
		t.Fatal(err)
	}
	enforced := npa.Call{Namespace: "default", Name: "web-0", Mode: "Strict", Interfaces: 1, Success: true}
	if d := cmp.Diff([]npa.Call{enforced}, a.Calls()); d != "" {
		t.Errorf("after ADD (-want +got):\n%s", d)
	}
	for range 2 { // runtimes repeat DELs
		if _, err := x.n.RunPlugin(p, "DEL", p.Result); err != nil {
			t.Errorf("DEL: %v", err)
		}
		x.await(a, func(c []npa.Call) bool { return len(c) > 1 })
	}
	deleted := npa.Call{Delete: true, Namespace: "default", Name: "web-0", Success: true}
	if d := cmp.Diff(deleted, a.Calls()[1]); d != "" || len(a.Pods()) != 0 {
		t.Errorf("after DEL, left %v (-want +got):\n%s", a.Pods(), d)
	}
	if err := x.n.RemoveSandbox(p); err != nil {
		t.Fatal(err)
	}
	x.nothingLeft(x.n)
}

// TestPolicy_DelDied: the plugin dies after the daemon's answer to a DEL. The runtime repeats
// the DEL, and then the agent is notified.
func TestPolicy_DelDied(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "strict")
	a := x.agent()
	p, err := x.n.AddPod(node.PodSpec{Namespace: "default", Name: "web-0"})
	if err != nil {
		t.Fatal(err)
	}
	died := x.wireDel(x.n, &cniwire.AddRequest{
		PodName: "web-0", PodNamespace: "default", ContainerID: p.ContainerID, IfName: p.IfName, NetworkName: "aws-cni",
	})
	if !died.Success || len(a.Pods()) != 1 {
		t.Fatalf("DEL %+v; the agent has %v", died, a.Pods())
	}
	if err := x.n.DelPod(p); err != nil {
		t.Errorf("DEL: %v", err)
	}
	x.await(a, func(c []npa.Call) bool { return c[len(c)-1].Delete && c[len(c)-1].Success })
	x.nothingLeft(x.n)
}

// TestPolicy_Wire: a pod with several interfaces, a missing link, and the mode in the answer
// to an unknown pod's DEL.
func TestPolicy_Wire(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "standard")
	a := x.agent()
	r := sandbox(1)
	reply := x.policy(&cniwire.PolicyRequest{PodName: r.PodName, PodNamespace: r.PodNamespace, ContainerID: r.ContainerID, Mode: "standard", Interfaces: 2})
	if reply.Success || reply.Cause != string(cause.PolicyAgentRefused) || !strings.Contains(reply.Detail, "Link not found") {
		t.Errorf("no links: %+v", reply)
	}
	if calls := a.Calls(); len(calls) != 2 || calls[1].Interfaces != 2 {
		t.Errorf("the refusal that may pass is tried twice: %+v", calls)
	}
	if got := x.wireAdd(x.n, r); got.NetworkPolicyMode != "standard" {
		t.Errorf("ADD: mode %q", got.NetworkPolicyMode)
	}
	for _, unknown := range []bool{false, true} {
		if got := x.wireDel(x.n, r); got.Unknown != unknown || got.NetworkPolicyMode != "standard" {
			t.Errorf("DEL: unknown %v, mode %q; want unknown %v", got.Unknown, got.NetworkPolicyMode, unknown)
		}
	}
}

// TestPolicy_RestartKeepsLiving: a daemon that has just started does not know pods with a
// branch ENI. As long as the pod's link is on the host, an earlier sandbox's DEL does not
// remove the pod's policies.
func TestPolicy_RestartKeepsLiving(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "strict")
	a := x.agent()
	link := netnames.HostVeth(netnames.BranchVethPrefix, "default", "web-0", 0)
	x.run(x.n, "/usr/sbin/ip", "link", "add", link, "type", "veth", "peer", "web0")
	if r := x.policy(&cniwire.PolicyRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "new", Mode: "strict", Interfaces: 1}); !r.Success {
		t.Fatalf("ADD: %+v", r)
	}
	ctx := testenv.Context(t)
	if r, err := x.n.StopDaemon(ctx, syscall.SIGTERM); err != nil || r.Code != 0 {
		t.Fatalf("end of the daemon: %+v, %v", r, err)
	}
	x.start(x.n, map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "strict"})
	for _, name := range []string{"web-0", "gone"} { // the agent is notified in this order
		if r := x.policy(&cniwire.PolicyRequest{PodName: name, PodNamespace: "default", ContainerID: "old", Delete: true}); !r.Success {
			t.Errorf("DEL of %s: %+v", name, r)
		}
	}
	x.await(a, func(c []npa.Call) bool { return len(callsOf(c, "gone")) == 1 })
	if calls := callsOf(a.Calls(), "web-0"); len(calls) != 1 {
		t.Errorf("the agent was notified of %+v", calls)
	}
	x.run(x.n, "/usr/sbin/ip", "link", "del", link)
	x.await(a, func(c []npa.Call) bool { return len(callsOf(c, "web-0")) == 2 })
}

// TestPolicy_AgentFails: however the agent fails, the ADD fails in time with upstream's
// message and its cause, and nothing of the pod is left.
func TestPolicy_AgentFails(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "strict")
	for _, row := range []struct {
		name  string
		away  bool
		fault npa.Fault
		want  cause.Code
		says  string
	}{
		{"away", true, npa.Fault{}, cause.PolicyAgentUnreachable, "npa.sock"},
		{"refuses", false, npa.Fault{Refuse: true}, cause.PolicyAgentRefused, ""},
		{"not-ready", false, npa.Fault{Error: "One of the policy reconcilers is not ready"}, cause.PolicyAgentRefused, "reconcilers"},
		{"hangs", false, npa.Fault{Hang: true}, cause.PolicyAgentUnreachable, "deadline"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if !row.away {
				a := x.agent()
				a.SetFault(row.fault)
				defer a.Close() // else the daemon keeps its connection
			}
			_, err := x.n.AddPod(node.PodSpec{Namespace: "default", Name: row.name})
			var failed *node.PluginError
			if !errors.As(err, &failed) || failed.Msg != "add cmd: failed to setup network policy" ||
				!strings.Contains(failed.Details, string(row.want)) || !strings.Contains(failed.Details, row.says) {
				t.Errorf("ADD: %v", err)
			}
			var failures introspect.NodeFailures
			testenv.Eventually(x.t, "the failure to be reported", func() bool {
				x.get(x.n, "/v1/failures", &failures)
				return len(failures.Items) > 0 && failures.Items[0].Pod.Name == row.name
			})
			if failures.Items[0].Cause != string(row.want) {
				t.Errorf("reported as %+v", failures.Items[0])
			}
		})
	}
	x.nothingLeft(x.n)
}

// TestPolicy_AgentReturns: pods are deleted while the agent is down. It is notified once
// it is back, except for a pod whose name is in use again.
func TestPolicy_AgentReturns(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "strict")
	first := x.agent()
	pods := x.mustAdd(x.n, "web", 4, 2)
	first.Close()
	again := pods[0].Name
	x.del(x.n, pods, 2) // fails the test if a DEL does
	second := x.agent()
	p, err := x.n.AddPod(node.PodSpec{Namespace: "default", Name: again})
	if err != nil {
		t.Fatal(err)
	}
	x.await(second, func(c []npa.Call) bool {
		deleted := map[string]bool{}
		for _, one := range c {
			if one.Delete && one.Success && one.Name != again {
				deleted[one.Name] = true
			}
		}
		return len(deleted) == 3
	})
	if d := cmp.Diff(map[string]string{"default/" + again: "strict"}, second.Pods()); d != "" {
		t.Error(d)
	}
	if own := callsOf(second.Calls(), again); own[len(own)-1].Delete {
		t.Errorf("the agent forgot a pod that lives: %+v", own)
	}
	x.del(x.n, []*node.Pod{p}, 1)
	x.await(second, func(c []npa.Call) bool { own := callsOf(c, again); return own[len(own)-1].Delete })
}

// TestPolicy_Drained: the daemon sends pending notifications before it exits.
func TestPolicy_Drained(t *testing.T) {
	t.Parallel()
	x := newPolicyLab(t, "strict")
	a := x.agent()
	pods := x.mustAdd(x.n, "web", 3, 1)
	a.SetFault(npa.Fault{Wait: 200 * time.Millisecond, Deletes: true})
	x.del(x.n, pods, 3)
	ctx := testenv.Context(t)
	if r, err := x.n.StopDaemon(ctx, syscall.SIGTERM); err != nil || r.Code != 0 {
		t.Fatalf("status %d: %v", r.Code, err)
	}
	if left := a.Pods(); len(left) != 0 {
		t.Errorf("the agent was not notified of %v", left)
	}
}

// TestPolicy_Off: without a mode, and with "none", no agent is needed and none is called.
func TestPolicy_Off(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "none"} {
		x := newPolicyLab(t, mode)
		a := x.agent()
		pods := x.mustAdd(x.n, "web", 1, 1)
		var result struct{ IPs []json.RawMessage }
		if err := json.Unmarshal(pods[0].Result, &result); err != nil || len(result.IPs) != 1 {
			t.Errorf("mode %q: %v: %s", mode, err, pods[0].Result)
		}
		x.del(x.n, pods, 1)
		if calls := a.Calls(); len(calls) != 0 {
			t.Errorf("mode %q: the agent was called: %+v", mode, calls)
		}
	}
}
