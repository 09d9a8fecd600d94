package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/daemon/cluster"
	"cnictl/daemon/kubeclient"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// containing counts the lines that contain a text.
func (l *lines) containing(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.SplitSeq(l.text.String(), "\n") {
		if line != "" && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// logTo makes c log everything above debug level.
func logTo(c *Client) *lines {
	l := &lines{}
	c.log = slog.New(slog.NewTextHandler(l, nil))
	return l
}

// TestOutage: the API server goes away in every possible way and comes back. The cache
// serves meanwhile, the loss is reported once, and no change is missed.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	for _, tc := range []struct {
		name string
		down func(*kubeapi.Proxy) error
		cut  bool // connections must be cut for a prompt detection
	}{
		{"refuses", (*kubeapi.Proxy).Refuse, false},
		{"hangs", (*kubeapi.Proxy).Hang, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			name := s.Name(t)
			s.CreateNamespace(t, name)
			s.CreateNode(t, name)
			s.CreatePod(t, name, "early", name)
			proxy := s.Proxy(t, nil)
			c := connect(t, proxy.Kubeconfig(t, "aws-node"), name)
			if tc.cut {
				// The test does not wait as long for a hung server as a daemon does. With a
				// shorter limit, a server on a busy machine would be lost again.
				const short = 4 * time.Second
				c.limits = limits{version: short, get: short, write: short, list: 5 * short}
			}
			log := logTo(c)
			rec := run(t, c)
			synced(t, c)
			expected(t, c, 1)
			// The watches may be faster than the first probe.
			testenv.Eventually(t, "it is reached", rec.has(func(r *record) bool { return len(r.versions) == 1 }))

			if err := tc.down(proxy); err != nil {
				t.Fatal(err)
			}
			if tc.cut {
				proxy.Cut()
			}
			testenv.Eventually(t, "the loss is reported", rec.has(func(r *record) bool { return len(r.lost) == 1 }))
			if p, err := c.Pod(t.Context(), name, "early"); err != nil || p.Name != "early" {
				t.Errorf("the cached pod: %+v, %v", p, err)
			}
			if n, known := c.ExpectedPods(expects); n != 1 || !known {
				t.Errorf("%d pods are expected, known: %v", n, known)
			}
			if _, err := c.Node(t.Context()); err != nil {
				t.Errorf("the cached Node: %v", err)
			}
			if _, err := c.Pod(t.Context(), name, "late"); err == nil || errors.Is(err, ErrNotFound) {
				t.Errorf("a pod that is not cached: %v", err)
			}
			if err := c.AddFeatures(t.Context(), cluster.Feature{Name: "x"}); err == nil {
				t.Error("a write succeeded")
			}
			s.CreatePod(t, name, "late", name)
			s.DeletePod(t, name, "early")
			apply(t, s, nodeResource, "", name, `{"spec":{"unschedulable":true}}`)

			if err := proxy.Restore(); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, "it is reached again", rec.has(func(r *record) bool { return len(r.versions) >= 2 }))
			testenv.Eventually(t, "what happened is seen", func() bool {
				_, late, _ := c.pods.get(name + "/late")
				_, early, current := c.pods.get(name + "/early")
				n, err := c.Node(t.Context())
				return late && !early && current && err == nil && n.Unschedulable
			})
			if rec.has(func(r *record) bool { return len(r.lost) != 1 })() {
				t.Errorf("the loss was reported more than once: %v", rec.lost)
			}
			if n := log.containing("level="); n != 0 {
				t.Errorf("%d lines were logged besides what is reported:\n%s", n, log.text.String())
			}
		})
	}
}

// TestOutage_AtTheStart: the API server is down when the daemon starts.
func TestOutage_AtTheStart(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreateNode(t, name)
	s.CreatePod(t, name, "early", name)
	proxy := s.Proxy(t, nil)
	kubeconfig := proxy.Kubeconfig(t, "aws-node")
	if err := proxy.Refuse(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, kubeconfig, name)
	rec := run(t, c)
	testenv.Eventually(t, "its absence is reported", rec.has(func(r *record) bool { return len(r.lost) == 1 }))
	if _, err := c.Node(t.Context()); err == nil {
		t.Error("a Node was read")
	}
	if err := proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "it is reached and the Node reported", rec.has(func(r *record) bool { return len(r.versions) == 1 && len(r.nodes) == 1 }))
	expected(t, c, 1)
}

// TestCut: a load balancer resets connections now and then. The watches continue where they
// were; nothing is reported, and nothing is listed again.
func TestCut(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreateNode(t, name)
	proxy := s.Proxy(t, nil)
	c := connect(t, proxy.Kubeconfig(t, "aws-node"), name)
	// Longer than a check for the API server takes, so that no two checks are cut.
	c.pauses.First = 200 * time.Millisecond
	log := logTo(c)
	count := counting(c)
	rec := run(t, c)
	synced(t, c)
	listed := count.gets.Load()
	for i := range 5 {
		synced(t, c)
		proxy.Cut()
		s.CreatePod(t, name, string(rune('a'+i)), name)
		expected(t, c, i+1)
	}
	synced(t, c)
	if rec.has(func(r *record) bool { return len(r.lost) != 0 })() {
		t.Errorf("a loss was reported: %v", rec.lost)
	}
	if n := count.gets.Load() - listed; n != 0 {
		t.Errorf("%d lists were read anew", n)
	}
	if n := log.containing("level="); n != 0 {
		t.Errorf("%d lines were logged:\n%s", n, log.text.String())
	}
}

// TestSlow: a far API server.
func TestSlow(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreateNode(t, name, func(n *corev1.Node) { n.Labels["zone"] = "a" })
	s.CreatePod(t, name, "early", name)
	proxy := s.Proxy(t, nil)
	c := connect(t, proxy.Kubeconfig(t, "aws-node"), name)
	if err := proxy.Slow(200 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	rec := run(t, c)
	if n, err := c.Node(t.Context()); err != nil || n.Labels["zone"] != "a" {
		t.Errorf("%+v, %v", n, err)
	}
	expected(t, c, 1)
	if rec.has(func(r *record) bool { return len(r.lost) != 0 })() {
		t.Errorf("a loss was reported: %v", rec.lost)
	}
}

// listsPods lets a service account list the pods of all namespaces.
func listsPods(t *testing.T, s *kubeapi.Server, user string) {
	t.Helper()
	for resource, object := range map[string]map[string]any{
		"clusterroles": {"kind": "ClusterRole", "rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"list"}}}},
		"clusterrolebindings": {
			"kind": "ClusterRoleBinding", "roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lists-pods"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "kube-system", "name": user}},
		},
	} {
		object["apiVersion"], object["metadata"] = "rbac.authorization.k8s.io/v1", map[string]any{"name": "lists-pods"}
		rbac := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
		if _, err := s.Objects().Resource(rbac).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.ExpectDenied(user, "list pods") // until the authorizer knows the binding
	pods := connect(t, s.Kubeconfig(t, user), "none")
	testenv.Eventually(t, "the right to list pods", func() bool {
		body, err := pods.open(t.Context(), "", kubeclient.Request{Kind: kubeclient.Pods}, nil)
		if err == nil {
			_ = body.Close()
		}
		return err == nil
	})
}

// TestMissingRights: a missing rule costs only its feature, and is reported once.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	const user = "cni-metrics-helper" // may list pods of kube-system, and uses nothing else
	s := kubeapi.Shared(t)
	listsPods(t, s, user)
	for _, right := range []string{
		"get nodes", "list nodes", "list cninodes.vpcresources.k8s.aws", "get cninodes.vpcresources.k8s.aws",
		"list eniconfigs.crd.k8s.amazonaws.com", "create events.events.k8s.io",
	} {
		s.ExpectDenied(user, right)
	}
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreatePod(t, name, "early", name)
	c := connect(t, s.Kubeconfig(t, user), name)
	log := logTo(c)
	count := counting(c)
	c.opts.Pods = false // its owner does not watch them either
	rec := run(t, c)
	listing := (&mirror[cluster.Pod]{c: c, what: pods, parse: parsePod, store: c.pods, changed: func() {}, log: c.log}).follower("spec.nodeName=" + name)
	add, done := listing.Begin()
	err := kubeclient.List(t.Context(), listing.Open, listing.Request, listing.Limits, func(raw json.RawMessage) error { add(raw); return nil })
	if err != nil {
		t.Error(err)
	}
	done()
	expected(t, c, 1)
	testenv.Eventually(t, "all were tried a few times", func() bool { return count.gets.Load() > 20 })
	for _, what := range []string{"nodes", "cninodes", "eniconfigs"} {
		if n := log.containing("source=" + what); n != 1 {
			t.Errorf("%d lines about %s, want one:\n%s", n, what, log.text.String())
		}
	}
	for what, call := range map[string]func() error{
		"the Node":    func() error { _, err := c.Node(t.Context()); return err },
		"the CNINode": func() error { return c.AddFeatures(t.Context(), sgp) },
		"an event":    func() error { return c.Emit(t.Context(), newEvent(c.OwnNode())) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "ClusterRole aws-node lacks") {
			t.Errorf("%s: %v, want what is missing", what, err)
		}
	}
	if rec.has(func(r *record) bool { return len(r.lost) != 0 || len(r.versions) != 1 })() {
		t.Errorf("it was taken for an outage: %v", rec.lost)
	}
}
