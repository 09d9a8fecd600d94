package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// connect connects to the cluster as a user. On a shared server other tests do not
// interfere: this test's nodes and daemon pods have its label.
func connect(t *testing.T, s *kubeapi.Server, cfg *rest.Config, edit ...func(*Config)) *Cluster {
	t.Helper()
	c := Config{Rest: cfg, NodeSelector: "test=" + s.Name(t), Selector: "k8s-app=" + s.Name(t), UserAgent: "test", Now: time.Now}
	for _, e := range edit {
		e(&c)
	}
	out, err := Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	return out
}

// makeNode makes a node with the test's label.
func makeNode(t *testing.T, s *kubeapi.Server, name string, edit ...func(*corev1.Node)) *corev1.Node {
	t.Helper()
	return s.CreateNode(t, s.Name(t)+"-"+name, append([]func(*corev1.Node){func(n *corev1.Node) {
		n.Labels["test"] = s.Name(t)
		n.Labels["topology.kubernetes.io/zone"] = "eu-west-1a"
		n.Labels["node.kubernetes.io/instance-type"] = "m5.large"
		n.Spec.ProviderID = "aws:///eu-west-1a/i-0123456789abcdef0"
		n.Status.Capacity["vpc.amazonaws.com/pod-eni"] = resource.MustParse("9")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
		n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.Architecture = "linux", "amd64"
	}}, edit...)...)
}

// makeDaemon makes a running daemon pod.
func makeDaemon(t *testing.T, s *kubeapi.Server, node string, edit ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := s.CreatePod(t, DefaultNamespace, "aws-node-"+node, node, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Labels = map[string]string{"k8s-app": s.Name(t)}
		p.Spec.HostNetwork = true
		p.Spec.Containers[0].Name, p.Spec.Containers[0].Image = "aws-node", "amazon-k8s-cni:v1.23.1"
	}}, edit...)...)
	return s.SetPodStatus(t, pod, running)
}

func running(s *corev1.PodStatus) {
	s.Phase = corev1.PodRunning
	s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "aws-node", Ready: true, RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func crashing(s *corev1.PodStatus) {
	running(s)
	s.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
}

func reasonOf(err error) introspect.Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// followed collects a watch's reports.
type followed struct {
	mu      sync.Mutex // guards all fields below
	targets map[string]fleet.Target
	puts    int
	changed chan struct{}
}

func follow(t *testing.T, c *Cluster) *followed {
	t.Helper()
	f := &followed{targets: map[string]fleet.Target{}, changed: make(chan struct{}, 1)}
	note := func(do func()) {
		f.mu.Lock()
		defer f.mu.Unlock()
		do()
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, func(t fleet.Target) { note(func() { f.targets[t.Name] = t; f.puts++ }) }, func() {}, func(name string) { note(func() { delete(f.targets, name) }) }, nil)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	return f
}

// await waits until the reports satisfy check.
func (f *followed) await(t *testing.T, what string, check func(map[string]fleet.Target) bool) {
	t.Helper()
	testenv.EventuallyErr(t, what, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !check(f.targets) {
			return fmt.Errorf("have %+v", f.targets)
		}
		return nil
	})
}

var connectNow = time.Now

func quantityOf(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
