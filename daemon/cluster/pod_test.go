package cluster

import "testing"

func TestPod_Is(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		pod  Pod
		uid  string
		want bool
	}{
		"the same":        {Pod{UID: "a"}, "a", true},
		"another":         {Pod{UID: "a"}, "b", false},
		"unknown":         {Pod{UID: "a"}, "", true},
		"of a static pod": {Pod{UID: "a", Mirror: true}, "b", true},
	} {
		if got := row.pod.Is(row.uid); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPod_OnBranch(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		change func(*Pod)
		want   bool
	}{
		"that runs":               {func(*Pod) {}, true},
		"that is being deleted":   {func(p *Pod) { p.Ended = true }, true},
		"that succeeded":          {func(p *Pod) { p.Ended, p.Finished = true, true }, false},
		"not announced":           {func(p *Pod) { p.PodENI = "" }, false},
		"that asks for none":      {func(p *Pod) { p.BranchENI = false }, false},
		"in the node's own netns": {func(p *Pod) { p.HostNetwork = true }, false},
	} {
		p := Pod{BranchENI: true, PodENI: "[{}]"}
		row.change(&p)
		if got := p.OnBranch(); got != row.want {
			t.Errorf("a pod %s: %t", what, got)
		}
	}
}
