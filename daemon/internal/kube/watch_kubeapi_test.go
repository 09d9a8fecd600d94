package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"

	"cnictl/daemon/cluster"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

func expects(p cluster.Pod) bool { return p.Expects(true) }

// expected waits until that many pods of the node are expected.
func expected(t *testing.T, c *Client, want int) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("%d pods are expected", want), func() bool {
		n, known := c.ExpectedPods(expects)
		return known && n == want
	})
}

// TestWatch_Pods: only the node's own pods, through their lives.
func TestWatch_Pods(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreateNode(t, name)
	s.CreatePod(t, name, "early", name)
	s.CreatePod(t, name, "elsewhere", name+"-other")
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	if n, known := c.ExpectedPods(expects); n != 0 || known {
		t.Errorf("%d pods are expected before anything was read, known: %v", n, known)
	}
	rec := run(t, c)
	synced(t, c)
	expected(t, c, 1)

	s.CreatePod(t, name, "host", name, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	s.CreatePod(t, name, "branch", name, func(p *corev1.Pod) {
		limit := corev1.ResourceList{podENIResource: quantities.MustParse("1")}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limit, Requests: limit}
	})
	late := s.CreatePod(t, name, "late", name)
	expected(t, c, 2)
	if branch, err := c.Pod(t.Context(), name, "branch"); err != nil || !branch.BranchENI || branch.NodeName != name || branch.UID == "" {
		t.Errorf("%+v, %v", branch, err)
	}
	s.SetPodStatus(t, late, func(st *corev1.PodStatus) { st.PodIPs = []corev1.PodIP{{IP: "10.0.0.7"}} })
	expected(t, c, 1)
	s.DeletePod(t, name, "early")
	expected(t, c, 0)
	testenv.Eventually(t, "host, branch and late are stored", func() bool { return c.pods.size() == 3 })
	if _, err := c.Pod(t.Context(), name, "early"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the deleted pod: %v", err)
	}
	if p, err := c.Pod(t.Context(), name, "elsewhere"); err != nil || p.NodeName != name+"-other" {
		t.Errorf("a pod of another node, asked for by name: %+v, %v", p, err)
	}
	if !rec.has(func(r *record) bool { return r.pods > 0 })() {
		t.Error("nothing was reported about pods")
	}
}

// TestWatch_Node: changes of capacity, cordon and annotations are reported; irrelevant ones,
// such as heartbeats, are not.
func TestWatch_Node(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNode(t, name, func(n *corev1.Node) {
		n.Labels["zone"] = "a"
		n.Status.Capacity[podENIResource] = quantities.MustParse("9")
	})
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	direct, err := c.Node(t.Context())
	if err != nil || direct.MaxPods != 110 || direct.PodENIs != 9 || direct.Labels["zone"] != "a" || direct.Unschedulable {
		t.Fatalf("by a GET: %+v, %v", direct, err)
	}
	rec := run(t, c)
	testenv.Eventually(t, "the Node is reported", rec.has(func(r *record) bool { return len(r.nodes) == 1 }))
	watched, err := c.Node(t.Context())
	if diff := cmp.Diff(direct, watched); diff != "" || err != nil {
		t.Errorf("error %v, the watched Node (-GET +watched):\n%s", err, diff)
	}
	apply(t, s, nodeResource, "", name, `{"metadata":{"annotations":{"k8s.amazonaws.com/eniConfig":"b"}},"spec":{"unschedulable":true}}`)
	testenv.Eventually(t, "the change is reported", rec.has(func(r *record) bool {
		last := r.nodes[len(r.nodes)-1]
		return last.Unschedulable && cluster.ENIConfigName(last, "k8s.amazonaws.com/eniConfig", "") == "b"
	}))
	var before int
	rec.has(func(r *record) bool { before = len(r.nodes); return true })()
	apply(t, s, nodeResource, "", name, `{"spec":{"providerID":"aws:///a/i-1"}}`)
	apply(t, s, nodeResource, "", name, `{"spec":{"unschedulable":false}}`)
	testenv.Eventually(t, "the Node is schedulable", rec.has(func(r *record) bool { return !r.nodes[len(r.nodes)-1].Unschedulable }))
	if rec.has(func(r *record) bool { return len(r.nodes) != before+1 })() {
		t.Errorf("reports of Nodes: want one more than %d", before)
	}
	if !rec.has(func(r *record) bool {
		return len(r.versions) == 1 && strings.HasPrefix(r.versions[0], "v1.") && r.lost == nil
	})() {
		t.Errorf("reached %q, lost %v", rec.versions, rec.lost)
	}
}

// TestWatch_ENIConfig: created, changed, made invalid and deleted while the daemon runs.
func TestWatch_ENIConfig(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNode(t, name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	if _, err := c.ENIConfig(t.Context(), name); !errors.Is(err, ErrNotFound) {
		t.Errorf("by a GET: %v", err)
	}
	create(t, s, eniConfigResource, "ENIConfig", name, map[string]any{"subnet": "subnet-0123456789abcdef0"})
	if got, err := c.ENIConfig(t.Context(), name); err != nil || got.Subnet != "subnet-0123456789abcdef0" {
		t.Errorf("by a GET: %+v, %v", got, err)
	}
	rec := run(t, c)
	synced(t, c)
	apply(t, s, eniConfigResource, "", name, `{"spec":{"subnet":"subnet-0123456789abcdef1","securityGroups":["sg-01234567"]}}`)
	want := cluster.ENIConfig{Name: name, Subnet: "subnet-0123456789abcdef1", SecurityGroups: []string{"sg-01234567"}}
	testenv.Eventually(t, "the change is seen", func() bool {
		got, err := c.ENIConfig(t.Context(), name)
		return err == nil && cmp.Equal(got, want)
	})
	apply(t, s, eniConfigResource, "", name, `{"spec":{"subnet":"mine"}}`)
	testenv.Eventually(t, "the spoilt one is reported", func() bool {
		_, err := c.ENIConfig(t.Context(), name)
		return errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), `"mine"`)
	})
	if err := s.Objects().Resource(eniConfigResource).Delete(t.Context(), name, deleteNow); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the deleted one is gone", func() bool {
		_, err := c.ENIConfig(t.Context(), name)
		return errors.Is(err, ErrNotFound)
	})
	for _, bad := range []string{"", "A", "a/b"} {
		if _, err := c.ENIConfig(t.Context(), bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !rec.has(func(r *record) bool { return r.configs > 0 })() {
		t.Error("nothing was reported about ENIConfigs")
	}
}
