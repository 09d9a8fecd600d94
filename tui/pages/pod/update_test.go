package pod

import (
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestHome: a pod or address opened without its node is found on the node that reported it, and
// looked up again as more data arrives.
func TestHome(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]pages.Open{
		"a pod":      {Pod: "shop/cart-7d9f-1"},
		"an address": {IP: "10.0.3.42"},
	} {
		s := pagetest.Open(New(o), pagetest.Fleet(), 120, 37)
		if len(s.Asked) == 0 || s.Asked[0].Node != pagetest.Plain {
			t.Errorf("%s: asked %+v", name, s.Asked)
		}
	}
	s := pagetest.Open(New(pages.Open{Pod: "shop/none"}), pagetest.Fleet(), 120, 37)
	if s.Wait(5); len(s.Asked) != 1 || s.Asked[0].Want != watch.WantClusterPods {
		t.Errorf("of an unknown pod: asked %+v", s.Asked)
	}
	if !s.Page.Focus(s.Context()).Maps {
		t.Error("the addresses of the nodes are not read for a pod that was not found")
	}
	// For a pod without an address, Kubernetes knows the node.
	s = pagetest.Open(New(pages.Open{Pod: "shop/waits"}), pagetest.Fleet(), 120, 37)
	if s.Wait(1); len(s.Asked) < 2 || s.Asked[1].Node != pagetest.Plain {
		t.Errorf("of a pod without an address: asked %+v", s.Asked)
	}
}

// TestWhyNone: for a pod without an address the screen says why, once, and what to do.
func TestWhyNone(t *testing.T) {
	t.Parallel()
	ref := introspect.PodRef{Namespace: "shop", Name: "waits"}
	f := pagetest.Fleet()
	ask := f.Documents
	f.Documents = func(node string, want watch.Want, q watch.Query) watch.Detail {
		d := ask(node, want, q)
		d.Pods = append(d.Pods, watch.Pod{PodRef: ref, Phase: "Pending"})
		d.Failures = &introspect.NodeFailures{Items: []introspect.Failure{{Pod: ref, Cause: "subnet-exhausted", Detail: "no free addresses"}}}
		return d
	}
	s := pagetest.Open(New(pages.Open{Node: pagetest.Plain, Pod: "shop/waits"}), f, 120, 37)
	lines := s.Frame()
	i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "Waiting for an IP address")
	})
	if i < 0 || !strings.HasPrefix(lines[i+1], "! ip/subnet-exhausted  no free addresses") || !strings.HasPrefix(lines[i+2], "→ fix") {
		t.Error(strings.Join(lines, "\n"))
	}
}
