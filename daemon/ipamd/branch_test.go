package ipamd

import (
	"testing"

	"cnictl/daemon/cluster"
)

// TestShows: a watch that lags behind shows an earlier pod of the name first, which is no answer.
func TestShows(t *testing.T) {
	t.Parallel()
	pod := func(uid, annotation string) cluster.Pod { return cluster.Pod{UID: uid, PodENI: annotation} }
	ended := cluster.Pod{UID: "own", Ended: true}
	for name, watch := range map[string]struct {
		seen []cluster.Pod
		ends bool // with the last of them, not before
	}{
		"the annotation":             {[]cluster.Pod{pod("own", ""), pod("own", "x")}, true},
		"the end":                    {[]cluster.Pod{pod("own", ""), ended}, true},
		"an earlier pod":             {[]cluster.Pod{pod("earlier", "y"), pod("earlier", "y")}, false},
		"an earlier pod, then it":    {[]cluster.Pod{pod("earlier", "y"), pod("own", ""), pod("own", "x")}, true},
		"replaced":                   {[]cluster.Pod{pod("own", ""), pod("later", "")}, true},
		"replaced before it is seen": {[]cluster.Pod{pod("earlier", "y"), pod("later", "")}, true},
	} {
		shown := shows(pod("own", ""))
		for i, p := range watch.seen {
			if got, want := shown(p), watch.ends && i == len(watch.seen)-1; got != want {
				t.Errorf("%s: %v after %d of them", name, got, i+1)
			}
		}
	}
}
