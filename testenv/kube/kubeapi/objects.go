package kubeapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// nameLength keeps names short enough to be part of longer ones.
const nameLength = 40

// Name returns a name for a test's objects in a shared server, valid for a node or a
// namespace. A test always gets the same name; other tests, and a rerun of the same test,
// get different ones.
func (s *Server) Name(t testing.TB) string {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	if name, ok := s.names.of[t]; ok {
		return name
	}
	if s.names.of == nil {
		s.names.of = map[testing.TB]string{}
	}
	s.names.given++
	name := strings.TrimPrefix(fmt.Sprintf("%s-%d", readable(t.Name()), s.names.given), "-")
	s.names.of[t] = name
	t.Cleanup(func() {
		s.names.mu.Lock()
		defer s.names.mu.Unlock()
		delete(s.names.of, t)
	})
	return name
}

// names are the names of the running tests.
type names struct {
	mu    sync.Mutex // guards all below
	of    map[testing.TB]string
	given int
}

// readable returns the part of a name that identifies the test to people.
func readable(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	return strings.Trim(name[:min(len(name), nameLength)], "-")
}

// CreateNamespace creates a namespace. It is never deleted: the server has no controller
// that would empty it.
func (s *Server) CreateNamespace(t testing.TB, name string) {
	t.Helper()
	create(t, s, "Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// CreateNode creates a Node with room for 110 pods, modified by edit, including its status.
func (s *Server) CreateNode(t testing.TB, name string, edit ...func(*corev1.Node)) *corev1.Node {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
		}},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}},
	}
	for _, e := range edit {
		e(node)
	}
	return create(t, s, "Node", node)
}

// CreatePod creates a pod bound to a node, modified by edit, in phase Pending.
func (s *Server) CreatePod(t testing.TB, namespace, name, node string, edit ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
	for _, e := range edit {
		e(pod)
	}
	return create(t, s, "Pod", pod)
}

// SetPodStatus writes the status of a pod as its kubelet would, modified by edit.
func (s *Server) SetPodStatus(t testing.TB, pod *corev1.Pod, edit func(*corev1.PodStatus)) *corev1.Pod {
	t.Helper()
	pods, err := s.of("Pod", pod.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	changed := pod.DeepCopy()
	changed.ResourceVersion = "" // the last write wins, as with a kubelet
	edit(&changed.Status)
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		t.Fatalf("encode pod %s: %v", pod.Name, err)
	}
	answer, err := pods.UpdateStatus(t.Context(), &unstructured.Unstructured{Object: u}, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("set status of pod %s: %v", pod.Name, err)
	}
	return decode[corev1.Pod](t, answer)
}

// DeletePod deletes a pod at once: no kubelet would confirm its end.
func (s *Server) DeletePod(t testing.TB, namespace, name string) {
	t.Helper()
	pods, err := s.of("Pod", namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatalf("delete pod %s: %v", name, err)
	}
}

// create creates an object of a kind and returns it as the server stores it.
func create[T any](t testing.TB, s *Server, kind string, o *T) *T {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatalf("encode %s: %v", kind, err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion(kinds[kind].resource.GroupVersion().String())
	u.SetKind(kind)
	objects, err := s.of(kind, u.GetNamespace())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := objects.Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s %s: %v", kind, u.GetName(), err)
	}
	return decode[T](t, answer)
}

func decode[T any](t testing.TB, u *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		t.Fatalf("decode %s: %v", u.GetKind(), err)
	}
	return out
}
