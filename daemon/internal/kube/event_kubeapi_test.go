package kube

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/kubeclient"
	"cnictl/daemon/notice"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

func newEvent(about notice.Ref) notice.Event {
	return notice.For(cause.SubnetExhausted, about, "ec2:AssignPrivateIpAddresses", "subnet-1 is full")
}

// sentEvents reads an object's events: the relevant fields, in order.
func sentEvents(t *testing.T, s *kubeapi.Server, namespace, about string) (out []map[string]any) {
	t.Helper()
	list, err := s.Objects().Resource(eventResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		regarding, _ := e.Object["regarding"].(map[string]any)
		if regarding["name"] != about {
			continue
		}
		if e.Object["eventTime"] == nil || !strings.HasPrefix(e.GetName(), about+".") {
			t.Errorf("event %s at %v", e.GetName(), e.Object["eventTime"])
		}
		fields := map[string]any{"regarding": regarding}
		for _, f := range []string{"action", "reason", "note", "type", "reportingController", "reportingInstance"} {
			fields[f] = e.Object[f]
		}
		out = append(out, fields)
	}
	return out
}

func TestEmit(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	pod := s.CreatePod(t, name, "web-0", name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		about     notice.Ref
		namespace string
		regarding map[string]any
	}{
		"pod":  {notice.Ref{Kind: "Pod", Namespace: name, Name: "web-0"}, name, map[string]any{"kind": "Pod", "namespace": name, "name": "web-0", "uid": string(pod.UID)}},
		"node": {c.OwnNode(), "default", map[string]any{"kind": "Node", "name": name, "uid": name}},
	} {
		tc.regarding["apiVersion"] = "v1"
		if err := c.Emit(t.Context(), newEvent(tc.about)); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		want := []map[string]any{{
			"regarding": tc.regarding, "action": "ec2:AssignPrivateIpAddresses", "reason": "SubnetExhausted", "type": "Warning",
			"note": "the subnet has no free addresses: subnet-1 is full", "reportingController": "aws-node", "reportingInstance": "aws-node-" + host,
		}}
		if diff := cmp.Diff(want, sentEvents(t, s, tc.namespace, tc.about.Name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for _, bad := range []notice.Ref{{Kind: "Pod", Namespace: "../x", Name: "a"}, {Kind: "Pod", Namespace: "x"}, {}} {
		if err := c.Emit(t.Context(), newEvent(bad)); err == nil {
			t.Errorf("about %+v: sent", bad)
		}
	}
	if own := c.OwnPod(); own != (notice.Ref{Kind: "Pod", Namespace: "kube-system", Name: "aws-node-x"}) {
		t.Errorf("the own pod is %+v", own)
	}
}

// TestEmit_Longest: events of the maximum length are accepted.
func TestEmit_Longest(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	long := strings.Repeat("a", kubeclient.MaxName)
	about := notice.Ref{Kind: "Pod", Namespace: name, Name: long, UID: "u"}
	e := notice.For(cause.EC2Error, about, strings.Repeat("é", 1000), strings.Repeat("…\x00", 2000))
	if err := c.Emit(t.Context(), e.Repeated(1<<30)); err != nil {
		t.Error(err)
	}
}

// TestEmitLater: surplus events of a kind are held back, the caller never waits, and Run
// sends the rest.
func TestEmitLater(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	about := func(i int) notice.Ref {
		return notice.Ref{Kind: "Pod", Namespace: name, Name: fmt.Sprint("web-", i), UID: "u"}
	}
	// Nothing sends yet: one event of each kind waits, up to the queue's limit.
	const surplus = 7
	for i := range maxWaitingEvents + surplus {
		c.EmitLater(newEvent(about(i)))
		c.EmitLater(newEvent(about(i)))
	}
	if n := c.DroppedEvents(); n != surplus {
		t.Errorf("%d events were dropped, want %d", n, surplus)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.sendEvents(ctx)
	policy := notice.DefaultPolicy()
	last := surplus + policy.TotalBurst - policy.ForNode - 1
	testenv.Eventually(t, "the last that may be sent was", func() bool {
		return len(sentEvents(t, s, name, fmt.Sprint("web-", last))) == 1
	})
	for i, want := range map[int]int{surplus - 1: 0, surplus: 1, last + 1: 0} {
		if n := len(sentEvents(t, s, name, fmt.Sprint("web-", i))); n != want {
			t.Errorf("%d events about pod %d, want %d", n, i, want)
		}
	}
}
