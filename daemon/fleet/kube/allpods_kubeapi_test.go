package kube

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/testenv/kube/kubeapi"
)

// TestAllPods lists a cluster's pods, including unscheduled ones, and finds a pod by its
// name, a prefix of its name, or its address.
func TestAllPods(t *testing.T) {
	s := kubeapi.Shared(t)
	namespace, node := s.Name(t), makeNode(t, s, "a").Name
	s.CreateNamespace(t, namespace)
	has := func(ip string) func(*corev1.PodStatus) {
		return func(st *corev1.PodStatus) {
			st.Phase, st.PodIP, st.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
		}
	}
	s.SetPodStatus(t, s.CreatePod(t, namespace, "cart", node), has("10.77.1.2"))
	s.SetPodStatus(t, s.CreatePod(t, namespace, "cart-1", node), has("10.77.1.3"))
	s.CreatePod(t, namespace, "waits", node)
	s.SetPodStatus(t, s.CreatePod(t, namespace, "unbound", ""), func(st *corev1.PodStatus) {
		st.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	})
	c := connect(t, s, s.Admin())
	for name, x := range map[string]struct {
		find    watch.PodQuery
		most    int
		want    string
		without bool
	}{
		"all":                {watch.PodQuery{Namespace: namespace}, 100, "cart-1@" + node + " cart@" + node + " unbound@ waits@" + node, false},
		"too many":           {watch.PodQuery{Namespace: namespace}, 3, "unbound@ waits@" + node, true},
		"a name":             {watch.PodQuery{Namespace: namespace, Name: "cart"}, 1, "cart@" + node, false},
		"a name anywhere":    {watch.PodQuery{Name: "unbound"}, 1, "unbound@", false},
		"part of a name":     {watch.PodQuery{Namespace: namespace, Name: "car"}, 100, "cart-1@" + node + " cart@" + node, false},
		"another name":       {watch.PodQuery{Namespace: namespace, Name: "art"}, 100, "", false},
		"an address":         {watch.PodQuery{IP: netip.MustParseAddr("10.77.1.3")}, 100, "cart-1@" + node, false},
		"an address of none": {watch.PodQuery{IP: netip.MustParseAddr("10.77.9.9")}, 100, "", false},
	} {
		got, err := c.allPods(t.Context(), x.find, x.most)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var pods []string
		for _, p := range got.Pods {
			if p.Namespace == namespace {
				pods = append(pods, p.Name+"@"+p.Node)
			}
			if p.Name == "unbound" && p.Namespace == namespace && p.Reason != "Unschedulable: 0/3 nodes are available" {
				t.Errorf("%s: the reason is %q", name, p.Reason)
			}
		}
		slices.Sort(pods)
		if strings.Join(pods, " ") != x.want || got.WithoutOnly != x.without || got.At.IsZero() {
			t.Errorf("%s: %q, without addresses only: %t; want %q, %t", name, pods, got.WithoutOnly, x.want, x.without)
		}
	}
	nobody := s.Admin()
	nobody.Impersonate.UserName = "nobody"
	if _, err := connect(t, s, nobody).AllPods(t.Context(), watch.PodQuery{}); reasonOf(err) != introspect.ReasonForbidden {
		t.Errorf("without the permission: %v", err)
	}
}
