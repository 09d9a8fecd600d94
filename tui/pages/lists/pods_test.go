package lists

import (
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func openPods() pages.Page { return NewPods(pages.Open{}) }

// answering is a fleet whose Kubernetes answers a request for all pods.
func answering(change func(*watch.Detail)) func() *pagetest.Source {
	return func() *pagetest.Source {
		f := pagetest.Fleet()
		ask := f.Documents
		f.Documents = func(node string, want watch.Want, q watch.Query) watch.Detail {
			d := ask(node, want, q)
			if want == watch.WantClusterPods {
				change(&d)
			}
			return d
		}
		return f
	}
}

func refused(d *watch.Detail) {
	d.ClusterPods, d.Errors = nil, map[watch.Want]document.NodeError{watch.WantClusterPods: {
		Reason: introspect.ReasonForbidden, Message: `pods is forbidden: User "dev" cannot list resource "pods"`,
	}}
}

func TestPods(t *testing.T) {
	still := func(s *pagetest.Screen) { s.Wait(3) }
	pagetest.Frames(t, "all", openPods, still)
	pagetest.Frames(t, "wide", openPods, func(s *pagetest.Screen) { s.Wide = true; s.Wait(3) })
	pagetest.Frames(t, "filtered", func() pages.Page { return NewPods(pages.Open{Filter: "state=waiting"}) }, still)
	pagetest.FramesOf(t, "unread", pagetest.Unread, openPods, still)
	pagetest.FramesOf(t, "unlisted", pagetest.Unlisted, openPods, still)
	pagetest.FramesOf(t, "refused", answering(refused), openPods, still)
	pagetest.Coloured(t, "all", openPods, still)
}

func TestPods_AllSizes(t *testing.T) {
	pagetest.CheckAllSizes(t, func(o pages.Open) pages.Page { return NewPods(o) }, "pods")
}

func TestPods_Keys(t *testing.T) { pagetest.Keys(t, NewPods(pages.Open{})) }

// TestPods_Opens: a row leads to its pod, ENI and node. The nodes of visible waiting pods are asked why.
func TestPods_Opens(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(NewPods(pages.Open{Filter: "pod=shop/waits"}), pagetest.Fleet(), 120, 37)
	s.Wait(3)
	s.Do(keymap.In, keymap.ToENI, keymap.ToNode)
	s.Page.(*Pods).List().SetFilter("pod=shop/cart-7d9f-1")
	s.Wait(3)
	s.Do(keymap.In, keymap.ToENI)
	want := []pages.Open{
		{Screen: "pod", Node: pagetest.Plain, Pod: "shop/waits"}, {Screen: "node", Node: pagetest.Plain},
		{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}, {Screen: "eni", Node: pagetest.Plain, ENI: "eni-0a1b2c3d4e5f60718", IP: "10.0.3.42"},
	}
	if len(s.Opened) != len(want) {
		t.Fatalf("%+v", s.Opened)
	}
	for i := range want {
		if s.Opened[i] != want[i] {
			t.Errorf("%+v, want %+v", s.Opened[i], want[i])
		}
	}
	asked := false
	for _, r := range s.Asked {
		asked = asked || r.Node == pagetest.Plain && r.Want == watch.WantFailures|watch.WantPlan
	}
	if !asked {
		t.Errorf("why the pod waits was not requested: %+v", s.Asked)
	}
	if f := s.Page.Focus(s.Context()); !f.Maps || len(f.Visible) < 2 || f.Visible[0] != pagetest.Plain {
		t.Errorf("%+v", f)
	}
}

// TestPods_LeftOut: with more pods than fit, the list says which are left out.
func TestPods_LeftOut(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(openPods(), answering(func(d *watch.Detail) { d.ClusterPods.WithoutOnly = true })(), 120, 37)
	s.Wait(3)
	if text := strings.Join(s.Frame(), "\n"); !strings.Contains(text, "with a branch ENI are left out") {
		t.Error(text)
	}
}
