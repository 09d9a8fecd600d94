package cluster_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/cluster"
)

type fs = []cluster.Feature

var (
	sgp    = cluster.Feature{Name: cluster.FeatureSecurityGroupsForPods}
	custom = cluster.Feature{Name: cluster.FeatureCustomNetworking, Value: "a"}
	other  = cluster.Feature{Name: cluster.FeatureCustomNetworking, Value: "b"}
	later  = cluster.Feature{Name: "Later", Value: "x"}
)

func TestAddFeature(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		have, add, want fs
		changed         bool
	}{
		"none":                     {nil, fs{sgp}, fs{sgp}, true},
		"nothing to add":           {fs{later}, nil, fs{later}, false},
		"both":                     {fs{later}, fs{custom, sgp}, fs{later, custom, sgp}, true},
		"there":                    {fs{custom, sgp}, fs{sgp, custom}, fs{custom, sgp}, false},
		"other value":              {fs{other, sgp, later}, fs{custom, sgp}, fs{custom, sgp, later}, true},
		"twice there":              {fs{sgp, sgp}, fs{sgp}, fs{sgp, sgp}, false},
		"there beside other value": {fs{other, custom}, fs{custom}, fs{other, custom}, false},
		"twice another value":      {fs{other, later, other}, fs{custom}, fs{custom, later}, true},
		"a value where none is":    {fs{{Name: sgp.Name, Value: "x"}}, fs{sgp}, fs{sgp}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tc.have)
			got, changed := cluster.AddFeature(tc.have, tc.add...)
			if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed {
				t.Errorf("changed %v (-want +got):\n%s", changed, diff)
			}
			if !slices.Equal(before, tc.have) {
				t.Errorf("the list given became %v", tc.have)
			}
			again, changed := cluster.AddFeature(got, tc.add...)
			if changed || !slices.Equal(again, got) {
				t.Errorf("added again: %v, changed %v", again, changed)
			}
		})
	}
}

func TestPod_Expects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod         cluster.Pod
		want, podON bool
	}{
		"young":                     {cluster.Pod{}, true, true},
		"of the host":               {cluster.Pod{HostNetwork: true}, false, false},
		"ended":                     {cluster.Pod{Ended: true}, false, false},
		"has its network":           {cluster.Pod{IPs: 1}, false, false},
		"branch":                    {cluster.Pod{BranchENI: true}, true, false},
		"branch, and the host's":    {cluster.Pod{BranchENI: true, HostNetwork: true}, false, false},
		"several networks":          {cluster.Pod{MultiNIC: true}, true, true},
		"branch of several network": {cluster.Pod{MultiNIC: true, BranchENI: true}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if off, on := tc.pod.Expects(false), tc.pod.Expects(true); off != tc.want || on != tc.podON {
				t.Errorf("%v without pod ENIs and %v with; want %v and %v", off, on, tc.want, tc.podON)
			}
		})
	}
}
