package kube

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/daemon/cluster"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// record is what Run reported.
type record struct {
	mu       sync.Mutex
	nodes    []cluster.Node
	cniNode  cluster.CNINode
	exists   bool
	versions []string
	lost     []error
	pods     int
	configs  int
	ended    bool // Run returned; nothing may follow
	late     bool
}

func (r *record) changes() Changes {
	locked := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late = r.late || r.ended
		f()
	}
	return Changes{
		Node:       func(n cluster.Node) { locked(func() { r.nodes = append(r.nodes, n) }) },
		CNINode:    func(n cluster.CNINode, ok bool) { locked(func() { r.cniNode, r.exists = n, ok }) },
		ENIConfigs: func() { locked(func() { r.configs++ }) },
		Pods:       func() { locked(func() { r.pods++ }) },
		Reached:    func(v string) { locked(func() { r.versions = append(r.versions, v) }) },
		Lost:       func(err error) { locked(func() { r.lost = append(r.lost, err) }) },
	}
}

// has returns a condition on the record.
func (r *record) has(ok func(*record) bool) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return ok(r)
	}
}

// run runs c until the test ends, and checks that it ends then.
func run(t *testing.T, c *Client) *record {
	t.Helper()
	r := &record{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		c.Run(ctx, r.changes())
		r.mu.Lock()
		r.ended = true
		r.mu.Unlock()
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		testenv.Receive(t, "the end of Run with its context", done)
		if !r.has(func(r *record) bool { return !r.late })() {
			t.Error("Run reported something after it returned")
		}
	})
	return r
}

// connect makes a client for a node that watches everything.
func connect(t *testing.T, kubeconfig, node string) *Client {
	t.Helper()
	c, err := New(Options{
		NodeName: node, PodName: "aws-node-x", Kubeconfig: kubeconfig, UserAgent: "aws-k8s-agent-test",
		Pods: true, CNINode: true, ENIConfigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Tests need no pauses sized for a fleet.
	c.pauses.First, c.pauses.Max = 20*time.Millisecond, 200*time.Millisecond
	return c
}

// synced waits until everything that c watches is in sync.
func synced(t *testing.T, c *Client) {
	t.Helper()
	testenv.Eventually(t, "all watches are open", func() bool {
		_, _, n := c.nodes.get("")
		_, _, p := c.pods.get("")
		_, _, f := c.cniNodes.get("")
		_, _, e := c.eniConfigs.get("")
		return n && p && f && e
	})
}

// Resources that tests write as an administrator.
var (
	nodeResource      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podResource       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	eventResource     = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	cniNodeResource   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
	eniConfigResource = schema.GroupVersionResource{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"}
)

// apply patches an object, as an administrator.
func apply(t *testing.T, s *kubeapi.Server, of schema.GroupVersionResource, namespace, name, change string) {
	t.Helper()
	_, err := s.Objects().Resource(of).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// create creates a cluster-scoped custom resource.
func create(t *testing.T, s *kubeapi.Server, of schema.GroupVersionResource, kind, name string, spec map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": of.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	if _, err := s.Objects().Resource(of).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now; its parent has not.
		_ = s.Objects().Resource(of).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
}

// features returns a CNINode's features, as an administrator sees them.
func features(t *testing.T, s *kubeapi.Server, name string) []cluster.Feature {
	t.Helper()
	object, err := s.Objects().Resource(cniNodeResource).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	n, err := parseCNINode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return n.node.Features
}
