package inventory

import (
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

func TestNode_State(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		trunk      *introspect.Trunk
		advertised *int
		want       string // "": not concerned with trunks
	}{
		"nothing":         {nil, nil, ""},
		"off, none":       {&introspect.Trunk{}, new(0), ""},
		"capacity alone":  {nil, new(54), document.TrunkNotReported},
		"off, capacity":   {&introspect.Trunk{}, new(54), document.TrunkOff},
		"attached":        {&introspect.Trunk{Enabled: true, ENIID: "eni-1"}, nil, document.TrunkAttached},
		"awaited":         {&introspect.Trunk{Enabled: true, Supported: new(true)}, nil, document.TrunkPending},
		"without support": {&introspect.Trunk{Enabled: true, Supported: new(false)}, nil, document.TrunkUnsupported},
	} {
		n := document.NodeIPAM{Summary: &introspect.Summary{Trunk: x.trunk}, Object: &document.NodeObject{BranchENIs: x.advertised}}
		got, ok := TrunkOf(&store.Node{NodeIPAM: n})
		if got.State != x.want || ok != (x.want != "") {
			t.Errorf("%s: %q %v, want %q", name, got.State, ok, x.want)
		}
	}
}

func TestWithPods(t *testing.T) {
	t.Parallel()
	got := WithBranchPods(document.TrunkItem{BranchUsed: new(3)}, []watch.Pod{
		{Wants: true, Phase: "Pending"}, {Wants: true, Phase: "Succeeded"}, {Phase: "Running"}, {Wants: true, PodENI: "no JSON"},
	}, false)
	if *got.Waiting != 1 || *got.Cooling != 2 || len(got.Pods) != 2 || !got.Pods[0].Waiting || got.Pods[1].Reason == "" {
		t.Errorf("%+v, waiting %d, cooling %d", got.Pods, *got.Waiting, *got.Cooling)
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	pod := func(namespace, eni string) watch.Pod {
		return watch.Pod{PodRef: introspect.PodRef{Namespace: namespace, Name: "p"}, Wants: true, Phase: "Pending", PodENI: eni}
	}
	pods := []watch.Pod{pod("shop", ""), pod("pay", ""), pod("pay", ""), pod("pay", "no JSON")}
	all := WithBranchPods(document.TrunkItem{BranchUsed: new(3)}, pods, false)
	for namespace, want := range map[string]struct{ pods, waiting int }{"shop": {1, 1}, "pay": {3, 2}, "nope": {0, 0}} {
		got := SelectBranchPods(all, func(of string) bool { return of == namespace })
		if len(got.Pods) != want.pods || *got.Waiting != want.waiting || *got.Cooling != 2 || len(all.Pods) != 4 || *all.Waiting != 3 {
			t.Errorf("%s: %+v, waiting %d, cooling %d; of all %d pods", namespace, got.Pods, *got.Waiting, *got.Cooling, len(all.Pods))
		}
	}
}

func TestShare_Left(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		used, limit *int
		share       float64
		left        int // -1: unknown
	}{
		"some":        {new(27), new(54), 0.5, 27},
		"full":        {new(54), new(54), 1, 0},
		"beyond":      {new(60), new(54), 60.0 / 54, 0},
		"none at all": {new(0), new(0), -1, 0},
		"unknown":     {nil, new(54), -1, -1},
		"no limit":    {new(3), nil, -1, -1},
	} {
		item := document.TrunkItem{BranchUsed: x.used, BranchLimit: x.limit}
		if share, ok := BranchShare(item); ok != (x.share >= 0) || ok && share != x.share {
			t.Errorf("%s: share %v %v, want %v", name, share, ok, x.share)
		}
		if left := BranchesLeft(item); (left != nil) != (x.left >= 0) || left != nil && *left != x.left {
			t.Errorf("%s: left %v, want %d", name, left, x.left)
		}
	}
}
