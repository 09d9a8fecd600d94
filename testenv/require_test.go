package testenv

import "testing"

func TestRequired(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		list, requirement string
		want              bool
	}{
		{"", "root", false},
		{"root", "root", true},
		{"root,nft", "nft", true},
		{"root, nft", "nft", true},
		{"root", "vlan", true},
		{"root", "images", true},
		{"root", "dummy", false},
		{"all", "vlan", true},
		{"root", "kube", true},
		{"kube", "kube", true},
		{"nft", "kube", false},
		{"rootless", "root", false},
	} {
		if got := required(tc.list, tc.requirement); got != tc.want {
			t.Errorf("required(%q, %q) = %v, want %v", tc.list, tc.requirement, got, tc.want)
		}
	}
}

func TestWithVar_ReplacesEveryEntry(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "B=2", "A=3", "AB=4"}
	got := withVar(env, "A", "5")
	if len(got) != 3 || got[0] != "B=2" || got[1] != "AB=4" || got[2] != "A=5" {
		t.Errorf("withVar = %q", got)
	}
	if env[0] != "A=1" {
		t.Error("withVar changed its argument")
	}
}
