package trunks

import (
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

func ptr[T any](v T) *T { return &v }

func TestNode_State(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		trunk      *introspect.Trunk
		advertised *int
		want       string // "": it has nothing to do with trunks
	}{
		"nothing":         {nil, nil, ""},
		"off, none":       {&introspect.Trunk{}, ptr(0), ""},
		"capacity alone":  {nil, ptr(54), introspect.TrunkUntold},
		"off, capacity":   {&introspect.Trunk{}, ptr(54), introspect.TrunkOff},
		"attached":        {&introspect.Trunk{Enabled: true, ENIID: "eni-1"}, nil, introspect.TrunkAttached},
		"awaited":         {&introspect.Trunk{Enabled: true, Supported: ptr(true)}, nil, introspect.TrunkAwaited},
		"without support": {&introspect.Trunk{Enabled: true, Supported: ptr(false)}, nil, introspect.TrunkUnsupported},
	} {
		n := introspect.NodeIPAM{Summary: &introspect.Summary{Trunk: x.trunk}, Object: &introspect.NodeObject{BranchENIs: x.advertised}}
		got, ok := Node(&store.Node{NodeIPAM: n})
		if got.State != x.want || ok != (x.want != "") {
			t.Errorf("%s: %q %v, want %q", name, got.State, ok, x.want)
		}
	}
}

func TestWithPods(t *testing.T) {
	t.Parallel()
	got := WithPods(introspect.TrunkItem{BranchUsed: ptr(3)}, []watch.Pod{
		{Wants: true, Phase: "Pending"}, {Wants: true, Phase: "Succeeded"}, {Phase: "Running"}, {Wants: true, PodENI: "no JSON"},
	}, false)
	if *got.Waiting != 1 || *got.Cooling != 2 || len(got.Pods) != 2 || !got.Pods[0].Waiting || got.Pods[1].Reason == "" {
		t.Errorf("%+v, waiting %d, cooling %d", got.Pods, *got.Waiting, *got.Cooling)
	}
}
