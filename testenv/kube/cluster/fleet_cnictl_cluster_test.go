package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
)

const readerUser = "somebody-with-cnictl"

// grantReader binds the roles of deploy/rbac/cnictl.yaml, and only these, to a user.
func (l *lab) grantReader() { l.grantRoles(readerUser, "cnictl") }

// grantRoles binds the roles of files in deploy/rbac to a user.
func (l *lab) grantRoles(user string, files ...string) {
	l.Helper()
	for _, file := range files {
		objects, err := deploy.RBAC(file)
		l.check(err)
		for _, o := range objects {
			l.grant(o, user)
		}
	}
}

// grant creates a role and binds it to a user in the role's scope.
func (l *lab) grant(role *unstructured.Unstructured, user string) {
	l.Helper()
	l.apply(role)
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": role.GetKind() + "Binding",
		"metadata": map[string]any{"name": role.GetName()},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": role.GetKind(), "name": role.GetName()},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	}}
	binding.SetNamespace(role.GetNamespace())
	l.apply(binding)
}

func (l *lab) apply(o *unstructured.Unstructured) {
	l.Helper()
	resource := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s"}
	of := l.c.API.Objects().Resource(resource)
	var err error
	if o.GetNamespace() != "" {
		_, err = of.Namespace(o.GetNamespace()).Apply(l.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
	} else {
		_, err = of.Apply(l.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
	}
	l.check(err)
}

// reader returns the cluster as the user with these rights sees it.
func (l *lab) reader(protocol string, nodes ...string) *kube.Cluster {
	l.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", l.c.Kubeconfig)
	l.check(err)
	cfg.Impersonate.UserName = readerUser
	c, err := kube.Connect(kube.Config{
		Rest: cfg, Selector: "k8s-app=aws-node", Nodes: nodes,
		Tunnel: tunnel.Options{Protocol: protocol}, UserAgent: "test", Now: time.Now,
	})
	l.check(err)
	l.Cleanup(c.Close)
	return c
}

// threeNodes returns the nodes that every test of the shared cluster has.
func (l *lab) threeNodes() (names []string) {
	for _, m := range l.c.Machines[:3] {
		names = append(names, m.Name)
	}
	return names
}

// sweep reads all nodes once.
func (l *lab) sweep(c *kube.Cluster, timeout time.Duration) map[string]document.NodeIPAM {
	l.Helper()
	targets, err := c.Targets(l.Context())
	l.check(err)
	f, err := fleet.New(fleet.Options{Targets: targets, NodeTimeout: timeout, UserAgent: "test", Now: time.Now})
	l.check(err)
	defer f.Close()
	out := map[string]document.NodeIPAM{}
	for _, n := range f.Sweep(l.Context(), fleet.Query{ENIs: true}).Items {
		out[n.Metadata.Name] = n
	}
	return out
}

// TestCnictl_Sweep reads three nodes through the API server and their kubelets, over both
// protocols, with only the rights that deploy/rbac/cnictl.yaml grants.
func TestCnictl_Sweep(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	for _, protocol := range []string{"", tunnel.ProtocolWebSocket, tunnel.ProtocolSPDY} {
		nodes := l.sweep(l.reader(protocol, l.threeNodes()...), testenv.Left(l))
		if len(nodes) != 3 {
			t.Fatalf("%d nodes", len(nodes))
		}
		for name, n := range nodes {
			if n.State != document.StateLive || n.Summary == nil || n.Source != document.SourceSummary || len(n.ENIs) == 0 || n.Via != document.ViaPortForward {
				t.Errorf("by %q: %s is %s via %q: %+v", protocol, name, n.State, n.Via, n.Error)
			}
		}
	}
}

// TestCnictl_Metrics reads a node's metrics port with the same right.
func TestCnictl_Metrics(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	targets, err := l.reader("", l.c.Machines[0].Name).Targets(l.Context())
	l.check(err)
	text, err := targets[0].Metrics(l.Context())
	if err != nil || !strings.Contains(string(text), "awscni_total_ip_addresses") {
		t.Errorf("%.200s, %v", text, err)
	}
}

// TestCnictl_DaemonDown: a node whose daemon is down is shown as such, and does not delay others.
func TestCnictl_DaemonDown(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	down := l.c.Machines[1]
	l.check(holdDaemon(down, l.Context()))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(releaseDaemon(down, ctx), down.AwaitReady(ctx)); err != nil {
			t.Error(err)
		}
	})
	for _, protocol := range []string{tunnel.ProtocolWebSocket, tunnel.ProtocolSPDY} {
		for name, n := range l.sweep(l.reader(protocol, l.threeNodes()...), testenv.Left(l)) {
			switch {
			case name != down.Name && n.State != document.StateLive:
				t.Errorf("by %s: %s is %s: %+v", protocol, name, n.State, n.Error)
			case name == down.Name && (n.Error == nil || n.Error.Reason != introspect.ReasonRefused):
				t.Errorf("by %s: the node without a daemon is %s: %+v", protocol, n.State, n.Error)
			}
		}
	}
}

// TestCnictl_KubeletSilent: a kubelet that accepts connections but never answers delays a
// sweep by at most a node's timeout; one that is gone is reported at once.
func TestCnictl_KubeletSilent(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	m := l.c.Machines[2]
	pid, err := m.Output("pidof", "kubelet")
	l.check(err)
	kubelets := strings.Fields(pid)
	_, err = m.Output("kill", append([]string{"-STOP"}, kubelets...)...)
	l.check(err)
	resume := func() { _, _ = m.Output("kill", append([]string{"-CONT"}, kubelets...)...) }
	defer resume()
	for _, protocol := range []string{tunnel.ProtocolWebSocket, tunnel.ProtocolSPDY} {
		targets, err := l.reader(protocol, m.Name).Targets(l.Context())
		l.check(err)
		ctx, cancel := context.WithDeadline(l.Context(), testenv.Soon())
		testenv.Within(t, 30*time.Second, "the end of the dial by "+protocol, func() { _, err = targets[0].Dial(ctx) })
		cancel()
		var e *tunnel.Error
		if !errors.As(err, &e) || e.Reason != introspect.ReasonTimeout {
			t.Errorf("by %s: %v", protocol, err)
		}
	}
	resume()
	n := l.sweep(l.reader("", m.Name), testenv.Left(l))[m.Name]
	if n.State != document.StateLive {
		t.Errorf("afterwards: %s: %+v", n.State, n.Error)
	}
	l.check(m.Stop(l.Context(), "kubelet", syscall.SIGKILL))
	defer func() { l.check(m.StartKubelet(l.Context())) }()
	targets, err := l.reader("", m.Name).Targets(l.Context())
	l.check(err)
	_, err = targets[0].Dial(l.Context())
	var e *tunnel.Error
	if !errors.As(err, &e) || e.Reason != introspect.ReasonTransport || !strings.Contains(e.Error(), "connection refused") {
		t.Errorf("without a kubelet: %v", err)
	}
}

// TestCnictl_LeavesNothing: fifty tunnels leave nothing behind here or on the node.
func TestCnictl_LeavesNothing(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	m := l.c.Machines[0]
	for _, protocol := range []string{tunnel.ProtocolWebSocket, tunnel.ProtocolSPDY} {
		c := l.reader(protocol, m.Name)
		targets, err := c.Targets(l.Context())
		l.check(err)
		l.ask(targets[0]) // to warm up the TLS session and caches
		before, began := runtime.NumGoroutine(), cpu()
		for range 50 {
			l.ask(targets[0])
		}
		l.Logf("by %s a tunnel with one request took %v of CPU time", protocol, (cpu()-began)/50)
		l.Logf("by %s a request in a kept tunnel took %v", protocol, l.kept(targets[0]))
		c.Close()
		testenv.EventuallyErr(l, "goroutines to be gone", func() error {
			if now := runtime.NumGoroutine(); now > before {
				return fmt.Errorf("%d, before %d", now, before)
			}
			return nil
		})
		testenv.EventuallyErr(l, "streams to be gone on the node", func() error {
			n, err := established(m, introspectionPort)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d connections to the daemon", n)
			}
			return err
		})
	}
}

// introspectionPort is 61679 in the form of /proc/net/tcp.
const introspectionPort = "F0EF"

// established counts a machine's connections to a port on its loopback.
func established(m *cluster.Machine, port string) (count int, _ error) {
	table, err := m.Output("cat", "/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && f[2] == "0100007F:"+port && f[3] == "01" {
			count++
		}
	}
	return count, nil
}

// ask reads one document over a new tunnel.
func (l *lab) ask(g fleet.Target) {
	l.Helper()
	c, err := client.New(client.Options{Address: g.Address, Dial: g.Dial, Now: time.Now})
	l.check(err)
	defer c.Close()
	_, _, err = c.Summary(l.Context())
	l.check(err)
}

// kept returns the CPU time per request when many requests share one tunnel.
func (l *lab) kept(g fleet.Target) time.Duration {
	l.Helper()
	c, err := client.New(client.Options{Address: g.Address, Dial: g.Dial, Now: time.Now})
	l.check(err)
	defer c.Close()
	_, _, err = c.Summary(l.Context())
	l.check(err)
	began := cpu()
	for range 100 {
		_, _, err = c.Summary(l.Context())
		l.check(err)
	}
	return (cpu() - began) / 100
}

// cpu returns the CPU time of this process, which includes the simulated EC2.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestCnictl_Logs reads a pod's log.
func TestCnictl_Logs(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	p, err := l.c.Machines[0].CNIPod(l.Context())
	l.check(err)
	log, err := l.reader("").DaemonLogs(l.Context(), tunnel.Pod{Namespace: p.Namespace, Name: p.Name}, kube.LogOptions{})
	l.check(err)
	defer log.Close()
	if _, err := io.ReadAll(io.LimitReader(log, 1<<20)); err != nil {
		t.Error(err)
	}
	_, err = l.reader("").DaemonLogs(l.Context(), tunnel.Pod{Namespace: p.Namespace, Name: "absent"}, kube.LogOptions{})
	var e *tunnel.Error
	if !errors.As(err, &e) || e.Reason != introspect.ReasonNoPod || e.Code != http.StatusNotFound {
		t.Errorf("of a pod that there is not: %v", err)
	}
}
