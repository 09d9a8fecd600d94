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
