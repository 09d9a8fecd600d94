package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/kubeclient"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// TestTargets joins nodes with their daemons, and gives the reason if there is none.
func TestTargets(t *testing.T) {
	s := kubeapi.Shared(t)
	runs := makeNode(t, s, "a-runs")
	pod := makeDaemon(t, s, runs.Name)
	fargate := makeNode(t, s, "b-fargate", func(n *corev1.Node) { n.Labels[computeTypeLabel] = computeFargate })
	windows := makeNode(t, s, "c-windows", func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = osWindows })
	bare := makeNode(t, s, "d-bare")
	crashes := makeNode(t, s, "e-crashes")
	s.SetPodStatus(t, makeDaemon(t, s, crashes.Name), crashing)
	pending := makeNode(t, s, "f-pending")
	s.SetPodStatus(t, makeDaemon(t, s, pending.Name), func(st *corev1.PodStatus) { *st = corev1.PodStatus{Phase: corev1.PodPending} })
	off := makeNode(t, s, "g-off")
	makeDaemon(t, s, off.Name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DISABLE_INTROSPECTION", Value: "true"}}
	})
	socket := makeNode(t, s, "h-socket")
	makeDaemon(t, s, socket.Name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "INTROSPECTION_BIND_ADDRESS", Value: "unix:/var/run/aws-node/i.sock"}, {Name: "WARM_IP_TARGET", Value: "5"},
		}
	})
	s.CreateNode(t, s.Name(t)+"-not-selected")

	targets, err := connect(t, s, s.Admin()).Targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct {
		state  document.State
		reason introspect.Reason
		why    string
		via    string
	}{
		runs.Name:    {via: document.ViaPortForward},
		fargate.Name: {document.StateNoDaemon, introspect.ReasonNoPod, "Fargate", ""},
		windows.Name: {document.StateNoDaemon, introspect.ReasonNoPod, "Windows", ""},
		bare.Name:    {document.StateNoDaemon, introspect.ReasonNoPod, "no pod k8s-app=" + s.Name(t) + " of namespace kube-system", ""},
		crashes.Name: {"", introspect.ReasonPodNotRunning, "CrashLoopBackOff", ""},
		pending.Name: {"", introspect.ReasonPodNotRunning, "Pending", ""},
		off.Name:     {via: document.ViaPortForward},
		socket.Name:  {via: document.ViaExec},
	}
	if len(targets) != len(rows) {
		t.Errorf("%d targets, want %d", len(targets), len(rows))
	}
	last := ""
	for _, g := range targets {
		want, ok := rows[g.Name]
		if !ok || g.Name <= last {
			t.Errorf("target %s is not one of the test's, or not in order", g.Name)
		}
		last = g.Name
		var reason introspect.Reason
		var why string
		if g.Absent != nil {
			reason, why = g.Absent.Reason, g.Absent.Message
		}
		if g.State != want.state || reason != want.reason || !strings.Contains(why, want.why) || g.Via != want.via {
			t.Errorf("%s: state %q, reason %q, %q, via %q; want %+v", g.Name, g.State, reason, why, g.Via, want)
		}
		if (g.Dial == nil) != (want.reason != "") || (g.Metrics == nil) != (want.reason != "") {
			t.Errorf("%s: dial %v, metrics %v", g.Name, g.Dial != nil, g.Metrics != nil)
		}
	}
	g := targets[0]
	o := g.Object
	if g.Key != string(pod.UID) || o.Zone != "eu-west-1a" || o.InstanceType != "m5.large" || o.InstanceID != "i-0123456789abcdef0" || o.OS != "linux" ||
		o.Architecture != "amd64" || o.InternalIP != "10.0.0.5" || o.CreatedAt == nil || o.Ready == nil || !*o.Ready || o.Unschedulable ||
		*o.MaxPods != 110 || *o.BranchENIs != 9 || o.Labels["test"] != s.Name(t) {
		t.Errorf("key %s, object %+v", g.Key, o)
	}
	if d := o.Daemon; d == nil || d.Name != pod.Name || d.Namespace != DefaultNamespace || d.UID != g.Key || d.Phase != "Running" || !d.Ready || d.Restarts != 2 || d.Image != "amazon-k8s-cni:v1.23.1" {
		t.Errorf("daemon %+v", d)
	}
	if where, ok := Daemon(o); !ok || where.Name != pod.Name {
		t.Errorf("daemon at %v", where)
	}
	for _, g := range targets {
		if g.Name == socket.Name && (len(g.Env) != 1 || g.Env["WARM_IP_TARGET"] != "5") {
			t.Errorf("settings of the pool: %v", g.Env)
		}
		if g.Name == off.Name {
			if _, err := g.Dial(t.Context()); reasonOf(err) != introspect.ReasonOff {
				t.Errorf("a daemon that is configured not to answer: %v", err)
			}
		}
	}
}

// TestTargets_Ways: --via selects the connection, and node names select targets.
func TestTargets_Ways(t *testing.T) {
	s := kubeapi.Shared(t)
	node, other := makeNode(t, s, "a"), makeNode(t, s, "b")
	makeDaemon(t, s, node.Name)
	makeDaemon(t, s, other.Name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "INTROSPECTION_BIND_ADDRESS", Value: "unix:/x"}}
	})
	for _, via := range []string{document.ViaPortForward, document.ViaExec, document.ViaProxy} {
		targets, err := connect(t, s, s.Admin(), func(c *Config) { c.Via = via }).Targets(t.Context())
		if err != nil || len(targets) != 2 || targets[0].Via != via || targets[1].Via != via {
			t.Fatalf("via %s: %+v, %v", via, targets, err)
		}
		if _, err := targets[1].Dial(t.Context()); via != document.ViaExec && reasonOf(err) != introspect.ReasonOff {
			t.Errorf("a unix socket via %s: %v", via, err)
		}
	}
	for _, names := range [][]string{{node.Name}, {node.Name, "absent"}} {
		targets, err := connect(t, s, s.Admin(), func(c *Config) { c.Nodes = names }).Targets(t.Context())
		if err != nil || len(targets) != 1 || targets[0].Name != node.Name || targets[0].Absent != nil {
			t.Errorf("named: %+v, %v", targets, err)
		}
	}
	if _, err := Connect(Config{Rest: s.Admin(), Now: connectNow, Via: "pigeon"}); err == nil {
		t.Error("a way that there is not")
	}
}

// TestTargets_Pages reads more nodes than fit in a page, with few requests.
func TestTargets_Pages(t *testing.T) {
	s := kubeapi.Shared(t)
	const count = kubeclient.PageSize + 3
	for i := range count {
		makeNode(t, s, fmt.Sprintf("%04d", i))
	}
	c := connect(t, s, s.Admin())
	targets, err := c.Targets(t.Context())
	if err != nil || len(targets) != count {
		t.Fatalf("%d targets, %v", len(targets), err)
	}
	if got := c.Requests(); got != 3 { // two pages of nodes, one of pods
		t.Errorf("%d requests", got)
	}
}

var (
	nodesResource    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	cninodesResource = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
)

func patchNode(t *testing.T, s *kubeapi.Server, name, patch string) {
	t.Helper()
	if _, err := s.Objects().Resource(nodesResource).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestWatch follows nodes and pods as they come, change and go.
func TestWatch(t *testing.T) {
	s := kubeapi.Shared(t)
	first := makeNode(t, s, "first")
	pod := makeDaemon(t, s, first.Name)
	f := follow(t, connect(t, s, s.Admin()))
	f.await(t, "the node with its daemon", func(m map[string]fleet.Target) bool {
		g, ok := m[first.Name]
		return ok && g.Absent == nil && g.Key == string(pod.UID)
	})
	f.mu.Lock()
	if f.puts != 1 {
		t.Errorf("one node reported %d times", f.puts)
	}
	f.mu.Unlock()

	second := makeNode(t, s, "second")
	f.await(t, "a new node without a daemon", func(m map[string]fleet.Target) bool {
		g, ok := m[second.Name]
		return ok && g.State == document.StateNoDaemon
	})
	late := makeDaemon(t, s, second.Name)
	f.await(t, "its daemon", func(m map[string]fleet.Target) bool { return m[second.Name].Dial != nil })
	s.SetPodStatus(t, late, crashing)
	f.await(t, "its daemon crashing", func(m map[string]fleet.Target) bool {
		g := m[second.Name]
		return g.Absent != nil && g.Absent.Reason == introspect.ReasonPodNotRunning && g.Dial == nil
	})
	patchNode(t, s, first.Name, `{"spec":{"unschedulable":true}}`)
	f.await(t, "a cordon", func(m map[string]fleet.Target) bool { return m[first.Name].Object.Unschedulable })
	s.DeletePod(t, DefaultNamespace, pod.Name)
	f.await(t, "no daemon", func(m map[string]fleet.Target) bool { return m[first.Name].State == document.StateNoDaemon })
	if err := s.Objects().Resource(nodesResource).Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await(t, "one node", func(m map[string]fleet.Target) bool { _, ok := m[first.Name]; return !ok && len(m) == 1 })
}

// TestWatch_Outage: connections are cut, and the API server restarts without its history.
// Nothing is lost.
func TestWatch_Outage(t *testing.T) {
	s := kubeapi.Start(t)
	gone, stays := makeNode(t, s, "gone"), makeNode(t, s, "stays")
	proxy := s.Proxy(t, nil)
	cfg := s.Admin()
	cfg.Host, cfg.ServerName = "https://"+proxy.Addr(), "localhost"
	f := follow(t, connect(t, s, cfg))
	f.await(t, "both nodes", func(m map[string]fleet.Target) bool { return len(m) == 2 })
	if err := proxy.Refuse(); err != nil {
		t.Fatal(err)
	}
	if err := s.Objects().Resource(nodesResource).Delete(t.Context(), gone.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	makeDaemon(t, s, stays.Name)
	if err := proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	f.await(t, "what happened meanwhile", func(m map[string]fleet.Target) bool { return len(m) == 1 && m[stays.Name].Dial != nil })
	patchNode(t, s, stays.Name, `{"spec":{"unschedulable":true}}`)
	f.await(t, "what happens afterwards", func(m map[string]fleet.Target) bool { return m[stays.Name].Object.Unschedulable })
}

// TestWatch_Hopeless ends on errors that only an administrator can fix.
func TestWatch_Hopeless(t *testing.T) {
	s := kubeapi.Shared(t)
	nobody := s.Admin()
	nobody.Impersonate.UserName = "nobody"
	expired := s.Admin()
	expired.CertData, expired.KeyData, expired.BearerToken = nil, nil, "expired"
	for want, cfg := range map[introspect.Reason]*Cluster{
		introspect.ReasonForbidden:  connect(t, s, nobody),
		introspect.ReasonCredential: connect(t, s, expired),
	} {
		err := cfg.Watch(t.Context(), func(fleet.Target) {}, func() {}, func(string) {}, nil)
		if reasonOf(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if _, err := cfg.Targets(t.Context()); reasonOf(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestPods: lists one node's pods, and reads one of them.
func TestPods(t *testing.T) {
	s := kubeapi.Shared(t)
	node := makeNode(t, s, "node")
	s.CreateNamespace(t, s.Name(t))
	plain := s.CreatePod(t, s.Name(t), "plain", node.Name)
	s.SetPodStatus(t, plain, func(st *corev1.PodStatus) {
		st.Phase, st.PodIP, st.PodIPs = corev1.PodRunning, "10.0.0.9", []corev1.PodIP{{IP: "10.0.0.9"}}
	})
	branch := s.CreatePod(t, s.Name(t), "branch", node.Name, func(p *corev1.Pod) {
		p.Annotations = map[string]string{"vpc.amazonaws.com/pod-eni": `[{"eniId":"eni-1"}]`}
		one := corev1.ResourceList{"vpc.amazonaws.com/pod-eni": *quantityOf("1")}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: one, Requests: one}
	})
	s.SetPodStatus(t, branch, func(st *corev1.PodStatus) {
		st.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	})
	s.CreatePod(t, s.Name(t), "elsewhere", "another")
	c := connect(t, s, s.Admin())
	pods, err := c.Pods(t.Context(), node.Name)
	if err != nil || len(pods) != 2 {
		t.Fatalf("%+v, %v", pods, err)
	}
	if p := pods[0]; p.Name != "branch" || !p.Wants || p.PodENI == "" || p.Reason != "ContainerCreating" || p.Phase != "Pending" {
		t.Errorf("%+v", p)
	}
	if p := pods[1]; p.Name != "plain" || p.Wants || p.Phase != "Running" || len(p.IPs) != 1 || p.IPs[0] != "10.0.0.9" {
		t.Errorf("%+v", p)
	}
	one, on, err := c.Pod(t.Context(), s.Name(t), "branch")
	if err != nil || on != node.Name || !one.Wants {
		t.Errorf("%+v on %s, %v", one, on, err)
	}
	if _, _, err := c.Pod(t.Context(), s.Name(t), "absent"); reasonOf(err) != introspect.ReasonNoPod {
		t.Errorf("a pod that there is not: %v", err)
	}
}

// TestCNINode reads a CNINode, and reports a missing one.
func TestCNINode(t *testing.T) {
	s := kubeapi.Shared(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vpcresources.k8s.aws/v1alpha1", "kind": "CNINode", "metadata": map[string]any{"name": s.Name(t)},
		"spec": map[string]any{"features": []any{map[string]any{"name": "SecurityGroupsForPods", "value": "x"}}},
	}}
	if _, err := s.Objects().Resource(cninodesResource).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, s.Admin())
	n, ok, err := c.CNINode(t.Context(), s.Name(t))
	if err != nil || !ok || len(n.Features) != 1 || n.Features[0] != (Feature{Name: "SecurityGroupsForPods", Value: "x"}) {
		t.Errorf("%+v, %v, %v", n, ok, err)
	}
	if _, ok, err := c.CNINode(t.Context(), "absent"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestTargets_Context: a silent API server does not delay the end of the context.
func TestTargets_Context(t *testing.T) {
	s := kubeapi.Shared(t)
	proxy := s.Proxy(t, nil)
	cfg := s.Admin()
	cfg.Host, cfg.ServerName = "https://"+proxy.Addr(), "localhost"
	c := connect(t, s, cfg)
	if err := proxy.Hang(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	defer cancel()
	if _, err := c.Targets(ctx); reasonOf(err) != introspect.ReasonTimeout {
		t.Errorf("error %v", err)
	}
	if err := proxy.Refuse(); err != nil {
		t.Fatal(err)
	}
	// The first requests may share the hung connection, which breaks.
	for ctx := t.Context(); ; {
		_, err := c.Targets(ctx)
		if reasonOf(err) != introspect.ReasonTransport {
			t.Fatalf("error %v", err)
		}
		if strings.Contains(err.Error(), "unreachable: connection refused") {
			return
		}
	}
}
