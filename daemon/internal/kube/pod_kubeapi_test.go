package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/daemon/cluster"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

type waited struct {
	pod cluster.Pod
	err error
}

// wait waits for a pod's annotation in the background.
func wait(ctx context.Context, c *Client, namespace, name string) <-chan waited {
	out := make(chan waited, 1)
	go func() {
		p, err := c.WaitPod(ctx, namespace, name, func(p cluster.Pod) bool { return p.PodENI != "" })
		out <- waited{p, err}
	}()
	return out
}

// TestWaitPod: a pod that appears late, with an annotation that appears even later; with a
// watch and without one.
func TestWaitPod(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	for _, watching := range []bool{true, false} {
		t.Run(fmt.Sprintf("watching %v", watching), func(t *testing.T) {
			t.Parallel()
			name := s.Name(t)
			s.CreateNamespace(t, name)
			c := connect(t, s.Kubeconfig(t, "aws-node"), name)
			if watching {
				run(t, c)
				testenv.Eventually(t, "pods are watched", func() bool { _, _, current := c.pods.get(""); return current })
			}
			answer := wait(t.Context(), c, name, "web-0")
			s.CreatePod(t, name, "web-0", name)
			if watching {
				testenv.Eventually(t, "the pod is seen", func() bool { return c.pods.size() == 1 })
			}
			apply(t, s, podResource, name, "web-0", `{"metadata":{"annotations":{"vpc.amazonaws.com/pod-eni":"[1]"}}}`)
			if got := <-answer; got.err != nil || got.pod.PodENI != "[1]" {
				t.Errorf("%+v, %v", got.pod, got.err)
			}
		})
	}
}

// TestWaitPod_Watched: with an open watch an annotation is seen at once, without polling.
func TestWaitPod_Watched(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreatePod(t, name, "web-0", name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	count := counting(c)
	run(t, c)
	synced(t, c)
	expected(t, c, 1)
	before := count.gets.Load()
	took := testenv.Took(func() {
		answer := wait(t.Context(), c, name, "web-0")
		// Changes of other pods neither end the wait nor cause a request.
		for i := range 20 {
			s.CreatePod(t, name, fmt.Sprintf("other-%d", i), name)
		}
		expected(t, c, 21)
		apply(t, s, podResource, name, "web-0", `{"metadata":{"annotations":{"vpc.amazonaws.com/pod-eni":"[1]"}}}`)
		if got := <-answer; got.err != nil || got.pod.PodENI != "[1]" {
			t.Errorf("%+v, %v", got.pod, got.err)
		}
	})
	// It polls now and then, in case the connection is dead, but no more often.
	if n := count.gets.Load() - before; n > int64(took/c.pauses.reread) {
		t.Errorf("%d requests were made besides the watch", n)
	}
}

// TestWaitPod_End returns the last state seen, and why it was not enough.
func TestWaitPod_End(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreatePod(t, name, "web-0", name)
	// ends waits for a pod until the first answer has been read.
	ends := func(pod string) waited {
		c := connect(t, s.Kubeconfig(t, "aws-node"), name)
		ctx, cancel := context.WithCancel(t.Context())
		next := c.rest.Client.Transport
		c.rest.Client.Transport = tripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil {
				answer.Body = ending{answer.Body, cancel}
			}
			return answer, err
		})
		return <-wait(ctx, c, name, pod)
	}
	if got := ends("web-0"); !errors.Is(got.err, context.Canceled) || got.pod.Name != "web-0" || !strings.Contains(got.err.Error(), "not in the expected state") {
		t.Errorf("%+v, %v", got.pod, got.err)
	}
	if got := ends("none"); !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, ErrNotFound) || got.pod != (cluster.Pod{}) {
		t.Errorf("%+v, %v", got.pod, got.err)
	}
}

// ending is an answer that ends a context once it has been read.
type ending struct {
	io.ReadCloser
	end context.CancelFunc
}

func (e ending) Close() error { e.end(); return e.ReadCloser.Close() }

// TestPod_OfTheSameName: a StatefulSet's pod is replaced while the cache still has its
// predecessor, which has ended.
func TestPod_OfTheSameName(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	c.pods.set(name+"/web-0", cluster.Pod{Namespace: name, Name: "web-0", UID: "old", Ended: true})
	if _, err := c.Pod(t.Context(), name, "web-0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before the new one: %v", err)
	}
	fresh := s.CreatePod(t, name, "web-0", name)
	if p, err := c.Pod(t.Context(), name, "web-0"); err != nil || p.UID != string(fresh.UID) {
		t.Errorf("%+v, %v", p, err)
	}
	// A running pod is served from the cache without a request.
	c.pods.set(name+"/web-0", cluster.Pod{Namespace: name, Name: "web-0", UID: "cached"})
	if p, err := c.Pod(t.Context(), name, "web-0"); err != nil || p.UID != "cached" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAnnotatePod(t *testing.T) {
	t.Parallel()
	const key = podIPsAnnotation
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	created := s.CreatePod(t, name, "web-0", name)
	c := connect(t, s.Kubeconfig(t, "aws-node-annotate"), name)
	pod := cluster.Pod{Namespace: name, Name: "web-0", UID: string(created.UID)}
	value := func(s string) *string { return &s }
	now := func() string {
		p, err := c.Pod(t.Context(), name, "web-0")
		if err != nil {
			t.Fatal(err)
		}
		return p.PodIPs
	}
	for _, step := range []struct {
		what, value string
		onlyIf      *string
		want        string
		err         error
	}{
		{"from nothing, if it is", "10.0.0.1", value(""), "10.0.0.1", nil},
		{"from another value than it has", "", value("10.0.0.9"), "10.0.0.1", ErrOtherValue},
		{"whatever it has", "10.0.0.2", nil, "10.0.0.2", nil},
		{"to what it is already", "10.0.0.2", value("10.0.0.9"), "10.0.0.2", nil},
		{"to nothing", "", value("10.0.0.2"), "", nil},
	} {
		if err := c.AnnotatePod(t.Context(), pod, key, step.value, step.onlyIf); !errors.Is(err, step.err) || (err == nil) != (step.err == nil) {
			t.Errorf("%s: %v, want %v", step.what, err, step.err)
		}
		if got := now(); got != step.want {
			t.Errorf("%s: it is %q, want %q", step.what, got, step.want)
		}
	}

	other := pod
	other.UID = "5a0c0000-0000-0000-0000-000000000000"
	for _, onlyIf := range []*string{nil, value("")} {
		if err := c.AnnotatePod(t.Context(), other, key, "10.0.0.3", onlyIf); !errors.Is(err, ErrReplaced) {
			t.Errorf("another pod of the name: %v", err)
		}
	}
	gone := pod
	gone.Name = "web-1"
	for _, onlyIf := range []*string{nil, value("")} {
		if err := c.AnnotatePod(t.Context(), gone, key, "10.0.0.3", onlyIf); !errors.Is(err, ErrNotFound) {
			t.Errorf("a pod that is gone: %v", err)
		}
	}
	if got := now(); got != "" {
		t.Errorf("it is %q after all that must not be written", got)
	}
}

// TestAnnotatePod_Contended: others keep writing the pod.
func TestAnnotatePod_Contended(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	created := s.CreatePod(t, name, "web-0", name)
	c := connect(t, s.Kubeconfig(t, "aws-node-annotate"), name)
	pod := cluster.Pod{Namespace: name, Name: "web-0", UID: string(created.UID)}
	// Another writer comes between our read and our write, three times.
	left := 3
	before(c, "PATCH", func() {
		if left > 0 {
			left--
			s.SetPodStatus(t, created, func(st *corev1.PodStatus) { st.Message = fmt.Sprint("turn ", left) })
		}
	})
	empty := ""
	if err := c.AnnotatePod(t.Context(), pod, podIPsAnnotation, "10.0.0.1", &empty); err != nil {
		t.Error(err)
	}
	if p, err := c.Pod(t.Context(), name, "web-0"); err != nil || p.PodIPs != "10.0.0.1" || left != 0 {
		t.Errorf("%+v, %v after %d of 3 conflicts", p, err, 3-left)
	}
}

// TestAnnotatePod_WithoutRight: without the annotation role the error says what is missing.
func TestAnnotatePod_WithoutRight(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	s.ExpectDenied("aws-node", "patch pods")
	name := s.Name(t)
	s.CreateNamespace(t, name)
	created := s.CreatePod(t, name, "web-0", name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	err := c.AnnotatePod(t.Context(), cluster.Pod{Namespace: name, Name: "web-0", UID: string(created.UID)}, "a", "b", nil)
	if err == nil || !strings.Contains(err.Error(), "ClusterRole aws-node") || !strings.Contains(err.Error(), "cannot patch") {
		t.Errorf("error %v, want the role and the verb", err)
	}
}
