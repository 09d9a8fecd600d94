package kubeapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/client-go/dynamic"

	"cnictl/testenv"
	"cnictl/testenv/kubeapi"
)

// TestStart: servers of different tests are isolated, and report their version.
func TestStart(t *testing.T) {
	one, two := kubeapi.Start(t), kubeapi.Start(t)
	one.CreateNode(t, "node")
	if _, err := one.Objects().Resource(nodes).Get(t.Context(), "node", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := two.Objects().Resource(nodes).Get(t.Context(), "node", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other server: %v", err)
	}
	var version struct{ GitVersion, Minor string }
	fetch(t, one, "/version", "application/json", &version)
	if version.GitVersion != kubeapi.Version || version.Minor != "35" {
		t.Errorf("version %s, minor %s", version.GitVersion, version.Minor)
	}
}

// TestRestart: objects and tokens survive, and a watch cannot resume.
func TestRestart(t *testing.T) {
	s := kubeapi.Start(t)
	client := clientOf(t, s.Kubeconfig(t, "aws-node")).Resource(nodes)
	before, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	endpoint := s.Endpoint()
	s.CreateNode(t, "node")
	s.Restart(t)
	if s.Endpoint() != endpoint {
		t.Errorf("endpoint %s, was %s", s.Endpoint(), endpoint)
	}
	_, err = client.Get(t.Context(), "node", metav1.GetOptions{})
	must(t, err)
	if err := watchFrom(t, client, before.GetResourceVersion()); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("want a watch from before to be refused as too old, have %v", err)
	}
}

// watchFrom returns the error that a watch from a version begins with, if any.
func watchFrom(t *testing.T, objects dynamic.ResourceInterface, version string) error {
	t.Helper()
	w, err := objects.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return err
	}
	defer w.Stop()
	return apierrors.FromObject(testenv.Receive(t, "the watch's first event", w.ResultChan()).Object)
}

func TestObjects(t *testing.T) {
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	node := s.CreateNode(t, name, func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} })
	if pods := node.Status.Capacity.Pods().Value(); pods != 110 || node.Annotations["a"] != "b" {
		t.Errorf("node has room for %d pods and annotations %v", pods, node.Annotations)
	}
	pod := s.CreatePod(t, name, "pod", name, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	if pod.UID == "" || pod.Spec.NodeName != name || !pod.Spec.HostNetwork || pod.Status.Phase != corev1.PodPending {
		t.Errorf("pod %+v", pod)
	}
	pod = s.SetPodStatus(t, pod, func(st *corev1.PodStatus) {
		st.Phase, st.PodIP, st.PodIPs = corev1.PodRunning, "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
	})
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP != "10.0.0.1" {
		t.Errorf("status %+v", pod.Status)
	}
	s.DeletePod(t, name, "pod")
	if _, err := s.Objects().Resource(pods).Namespace(name).Get(t.Context(), "pod", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted pod: %v", err)
	}
}

func TestName(t *testing.T) {
	s := kubeapi.Shared(t)
	seen := map[string]bool{}
	for _, sub := range []string{"a", "A", "a/b", "Ünïcode and a rather long text that no label would ever hold in whole"} {
		t.Run(sub, func(t *testing.T) {
			name := s.Name(t)
			if seen[name] || len(name) > 63 || name != s.Name(t) {
				t.Errorf("name %q of %q", name, t.Name())
			}
			seen[name] = true
			s.CreateNode(t, name)
			s.CreateNamespace(t, name)
		})
	}
}
