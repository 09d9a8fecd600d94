package vpc_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/aws/oldipamd"
	"cnictl/testenv/network/netns"
)

const (
	oldSocket    = "/var/run/aws-node/ipamd.sock"
	policySocket = "/var/run/aws-node/npa.sock"
)

// oldDaemon runs upstream's daemon, and no other, on its socket.
func oldDaemon(t *testing.T, o oldipamd.Options) *oldipamd.Daemon {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(oldSocket), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Socket = oldSocket
	d, err := oldipamd.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func policyAgent(t *testing.T, node *netns.NS) *npa.Agent {
	t.Helper()
	a, err := npa.Start(npa.Options{Socket: policySocket, Netns: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// TestBinary_OldDaemon: during an update of a node, the daemon may be upstream's. Each kind of
// pod comes and goes with the same results as with our daemon, even if the daemon refuses
// clients of other releases. The plugin itself calls the policy agent.
func TestBinary_OldDaemon(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	for name, pod := range map[string]oldipamd.Pod{
		"primary ENI":   oldipamd.Ordinary("10.0.0.12", 0, 254), // by address or by prefix
		"secondary ENI": oldipamd.Ordinary("10.0.0.21", 1, 2),
		"IPv6":          oldipamd.IPv6("2001:db8::7"),
		"two":           oldipamd.TwoNICs("10.0.0.12", "10.2.0.7"),
	} {
		result := podResults[name]
		result.nics = slices.Clone(result.nics)
		for i := range result.nics {
			result.nics[i].HostLink = netnames.HostVeth("eni", "default", "web-0", i)
		}
		if name == "two" {
			result.nics[1].Table = 10101
		}
		for _, o := range []oldipamd.Options{{}, {Version: "v1.23.1"}, {Version: "v1.23.1", NetworkPolicyMode: "standard"}} {
			for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
				t.Run(strings.Join([]string{name, o.Version, o.NetworkPolicyMode, version}, " "), func(t *testing.T) {
					comesAndGoes(t, o, pod, version, result)
				})
			}
		}
	}
}

func comesAndGoes(t *testing.T, o oldipamd.Options, pod oldipamd.Pod, version string, result podResult) {
	node, in := netns.New(t), netns.New(t)
	d := oldDaemon(t, o)
	d.SetPod("default", "web-0", pod)
	agent := policyAgent(t, node)
	box := newSandbox(t, node, "abc001", "web-0", in.Path)
	stdin := func(more ...string) string {
		return strings.Replace(at(version, box.stdin(more...)), `pod-annotations":{}`, `pod-annotations":{"k8s.amazonaws.com/nicConfig":"multi-nic-attachment"}`, 1)
	}
	calls := func(want ...npa.Call) {
		t.Helper()
		if o.NetworkPolicyMode == "" {
			want = nil
		}
		if diff := cmp.Diff(want, agent.Calls()); diff != "" {
			t.Errorf("calls of the agent (-want +got):\n%s", diff)
		}
	}
	enforced := npa.Call{Namespace: "default", Name: "web-0", Mode: "standard", Interfaces: int32(len(result.nics)), Success: true}
	deleted := npa.Call{Delete: true, Namespace: "default", Name: "web-0", Success: true}
	want := result.byLibrary(t, version, in.Path)
	box.expect(t, "ADD", stdin(), 0, want)
	if got := len(d.Held()); got != 1 {
		t.Errorf("the daemon holds %d sandboxes", got)
	}
	calls(enforced)
	for range 2 { // the second time, the daemon answers that it does not know the pod
		box.expect(t, "DEL", stdin(`,"prevResult":`+want), 0, "")
		if got := podRules(t, node); got != nil || len(d.Held()) != 0 {
			t.Errorf("left: %q, held %v", got, d.Held())
		}
		calls(enforced, deleted)
	}
	box.expect(t, "ADD", stdin(), 0, want)
	d.Close() // leaves its socket behind
	box.expect(t, "DEL", stdin(`,"prevResult":`+want), 0, "")
	if got := podRules(t, node); got != nil {
		t.Errorf("left of a DEL without a daemon: %q", got)
	}
	if code, out, _, err := box.run(t.Context(), "ADD", stdin()); err != nil || code != 1 || !strings.Contains(out, "add cmd: Error received from AddNetwork gRPC call: rpc error: code = Unavailable desc = ") {
		t.Errorf("ADD without a daemon: %d %s %v", code, out, err)
	}
}

// TestBinary_OldDaemonRefuses: refusals have upstream's texts.
func TestBinary_OldDaemonRefuses(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	node, in := netns.New(t), netns.New(t)
	d := oldDaemon(t, oldipamd.Options{NetworkPolicyMode: "standard"})
	box := newSandbox(t, node, "abc001", "web-0", in.Path)
	code, out, _, err := box.run(t.Context(), "ADD", box.stdin())
	if err != nil || code != 1 || !strings.Contains(out, `"msg": "add cmd: failed to assign an IP address to container"`) {
		t.Errorf("ADD of a pod it does not know: %d %s %v", code, out, err)
	}
	d.SetPod("default", "web-0", oldipamd.Ordinary("10.0.0.21", 1, 2))
	// No policy agent: as with upstream, ADD fails and the network stays until DEL.
	code, out, _, err = box.run(t.Context(), "ADD", box.stdin())
	if err != nil || code != 1 || !strings.Contains(out, `"msg": "add cmd: failed to setup network policy"`) || !strings.Contains(out, string(cause.PolicyAgentUnreachable)) {
		t.Errorf("ADD without an agent: %d %s %v", code, out, err)
	}
	if !slices.Contains(linkNames(t, node), netnames.HostVeth("eni", "default", "web-0", 0)) {
		t.Error("the network is gone")
	}
	box.expect(t, "DEL", box.stdin(), 0, "")
	if got := podRules(t, node); got != nil {
		t.Errorf("rules left: %q", got)
	}
	box.expect(t, "DEL", box.stdin(), 0, "") // unknown pod
}

// TestBinary_OldDaemonNoHelper: an error says that aws-cni-grpc is missing or fails, and
// that the aws-node image installs it. A pod can be deleted without it.
func TestBinary_OldDaemonNoHelper(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	built, err := buildPlugin()
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ helper, want string }{
		"missing":        {"", "/aws-cni-grpc: no such file or directory"},
		"does not start": {"not a program", "/aws-cni-grpc: exec format error"},
		"fails":          {"#!/bin/sh\nexit 3\n", ", exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			node, in := netns.New(t), netns.New(t)
			d := oldDaemon(t, oldipamd.Options{})
			d.SetPod("default", "web-0", oldipamd.Ordinary("10.0.0.21", 1, 2))
			box := newSandbox(t, node, "abc001", "web-0", in.Path)
			want := podResults["secondary ENI"].byLibrary(t, "0.4.0", in.Path)
			box.expect(t, "ADD", box.stdin(), 0, want)
			dir := t.TempDir()
			box.bin = filepath.Join(dir, "aws-cni")
			if err := os.WriteFile(box.bin, plugin, 0o700); err != nil {
				t.Fatal(err)
			}
			if row.helper != "" {
				if err := os.WriteFile(filepath.Join(dir, "aws-cni-grpc"), []byte(row.helper), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			code, out, _, err := box.run(t.Context(), "ADD", box.stdin())
			if err != nil || code != 1 || !strings.Contains(out, row.want+`"`) ||
				!strings.Contains(out, `"msg": "add cmd: Error received from AddNetwork gRPC call: rpc error: code = Unavailable desc = run `+dir) ||
				!strings.Contains(out, string(cause.DaemonUnreachable)) || !strings.Contains(out, "the aws-node image of this release installs") {
				t.Errorf("ADD: %d %s %v", code, out, err)
			}
			box.expect(t, "DEL", box.stdin(`,"prevResult":`+want), 0, "")
			if got := podRules(t, node); got != nil || !strings.Contains(box.logged(t), "Error received from DelNetwork gRPC call: rpc error: code = Unavailable desc = run ") {
				t.Errorf("left: %q, logged %s", got, box.logged(t))
			}
		})
	}
}

// TestBinary_LeanFirst: if both sockets exist, the plugin calls the lean one; if neither daemon
// answers, the agent is still notified that the pod is gone.
func TestBinary_LeanFirst(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	node, in := netns.New(t), netns.New(t)
	agent := policyAgent(t, node)
	box := newSandbox(t, node, "abc001", "web-0", in.Path)
	want := podResults["secondary ENI"].byLibrary(t, "0.4.0", in.Path)
	t.Run("both", func(t *testing.T) {
		d := oldDaemon(t, oldipamd.Options{})
		s := (&server{add: allocates(cniwire.Allocation{IPv4: "10.0.0.21", Device: 1, RouteTable: 2})}).serve(t)
		box.expect(t, "ADD", box.stdin(), 0, want)
		if adds, _ := s.requests(); len(adds) != 1 || len(d.Adds()) != 0 {
			t.Errorf("asked %d and %d times", len(adds), len(d.Adds()))
		}
	})
	box.expect(t, "DEL", box.stdin(`,"prevResult":`+want), 0, "")
	if got := podRules(t, node); got != nil {
		t.Errorf("rules left: %q", got)
	}
	if calls := agent.Calls(); len(calls) != 1 || !calls[0].Delete {
		t.Errorf("calls of the agent: %+v", calls)
	}
}
