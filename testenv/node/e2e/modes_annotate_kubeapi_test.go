package e2e_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/kubeapi"
)

// podIPs is the annotation that ANNOTATE_POD_IP enables.
const podIPs = "vpc.amazonaws.com/pod-ips"

// annotates has the settings of a daemon that annotates pods with their addresses.
var annotates = map[string]string{"ANNOTATE_POD_IP": "true", "WARM_IP_TARGET": "3"}

// TestModes_AnnotatePodIP: a pod's annotation has its address for as long as the pod has it.
func TestModes_AnnotatePodIP(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]func(*testing.T){
		"written, and emptied":       annotationLife,
		"of a pod that was replaced": annotationOfNewerPod,
		"without the right":          annotationDenied,
		"the API server is away":     annotationAway,
	}, func(t *testing.T, row func(*testing.T)) { row(t) })
}

func (c *cluster) annotating() *member {
	c.t.Helper()
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.lab.start(m.Node, m.env("aws-node-annotate", annotates))
	return m
}

// gave returns the address in a reply, which must have exactly one.
func (m *member) gave(r *cniwire.AddReply) string {
	m.c.t.Helper()
	if !r.Success || len(r.Allocations) != 1 {
		m.c.t.Fatalf("%+v", r)
	}
	return r.Allocations[0].IPv4
}

func annotationLife(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.annotating()
	first, other := m.bind("first"), m.bind("other")
	address := m.gave(m.add(first))
	if got := c.annotation(first, podIPs); got != address {
		t.Errorf("the annotation is %q when the ADD is answered, want %s", got, address)
	}
	// Delete at once: the watch may not have shown the daemon its own annotation yet.
	if r := m.del(first); !r.Success {
		t.Errorf("%+v", r)
	}
	testenv.Eventually(c.t, "the annotation is empty", func() bool { return c.annotation(first, podIPs) == "" })

	m.gave(m.add(other))
	const foreign = "10.9.9.9"
	c.mergePatch(podObjects, other.Namespace, other.Name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{podIPs: foreign}}})
	if r := m.del(other); !r.Success {
		t.Errorf("DEL of a pod whose annotation is another's: %+v", r)
	}
	if got := c.annotation(other, podIPs); got != foreign {
		t.Errorf("the annotation has become %q", got)
	}
}

// annotationOfNewerPod: a sandbox's DEL does not change a newer pod of the same name.
func annotationOfNewerPod(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.annotating()
	older := m.bind("web-0")
	m.gave(m.add(older))
	c.api.DeletePod(t, older.Namespace, older.Name)
	newer := m.bind("web-0")
	address := m.gave(m.add(newer))
	if r := m.del(older); !r.Success {
		t.Errorf("%+v", r)
	}
	if got := c.annotation(newer, podIPs); got != address {
		t.Errorf("the newer pod's annotation is %q, want %s", got, address)
	}
}

// annotationDenied: the ADD fails, and the pod has no address. The test starts its own API
// server: the denied requests that it needs would fail other tests.
func annotationDenied(t *testing.T) {
	c := &cluster{lab: newLab(t, fakeaws.Options{}), api: kubeapi.Start(t)}
	c.namespace = c.api.Name(t)
	c.api.CreateNamespace(t, c.namespace)
	c.api.ExpectDenied("aws-node", "patch pods")
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(annotates)
	pod := m.bind("p")
	m.failsWith(pod, "pod-annotation", "Failed to add the pod annotation:")
	m.holdsNone()
	if cooling := *m.summary().Cards[0].Cooling; cooling != 0 {
		t.Errorf("%d addresses cool that no pod had", cooling)
	}
	if r := m.del(pod); !r.Unknown {
		t.Errorf("DEL: %+v", r)
	}
}

// holdsNone checks that no sandbox has an address.
func (m *member) holdsNone() {
	m.c.t.Helper()
	allocations, err := m.Allocations()
	if err != nil || len(allocations) > 0 {
		m.c.t.Errorf("allocations %+v, %v", allocations, err)
	}
	if card := m.summary().Cards[0]; card.Assigned != 0 {
		m.c.t.Errorf("%d addresses are assigned", card.Assigned)
	}
}

// annotationAway: the ADD waits for an API server that comes back soon. If the server does not,
// the ADD fails and leaves nothing behind.
func annotationAway(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.annotating()
	seen := func(name string) *corev1.Pod {
		t.Helper()
		pod := m.bind(name)
		m.gave(m.add(pod)) // from now on the daemon knows the pod
		m.del(pod)
		return pod
	}
	soon, never := seen("soon"), seen("never")
	if err := m.proxy.Refuse(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.failsWith(never, "pod-annotation", "Failed to add the pod annotation:")
	if took := time.Since(began); took < time.Second { //realtime: a lower bound
		t.Errorf("the ADD failed after %v and did not wait", took)
	}
	m.holdsNone()
	asked := value(c.scrape(m.Node), "awscni_add_ip_req_count")
	replied := make(chan *cniwire.AddReply)
	go func() { replied <- m.add(soon) }()
	testenv.Eventually(c.t, "the ADD is with the daemon", func() bool { return value(c.scrape(m.Node), "awscni_add_ip_req_count") != asked })
	if err := m.proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	address := m.gave(<-replied)
	if got := c.annotation(soon, podIPs); got != address {
		t.Errorf("the annotation is %q, want %s", got, address)
	}
}
