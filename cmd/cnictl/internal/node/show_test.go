package node

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestTrunk(t *testing.T) {
	t.Parallel()
	no, yes, none, used, limit := false, true, 0, 3, 9
	for _, tt := range []struct {
		kind  string
		trunk *introspect.Trunk
		want  string
	}{
		{"m5.large", nil, ""},
		{"t3.medium", &introspect.Trunk{Supported: &no, BranchLimit: &none}, "not supported by t3.medium"},
		{"", &introspect.Trunk{Enabled: true, Supported: &no}, "not supported by the instance type"},
		{"m5.large", &introspect.Trunk{Supported: &yes, BranchLimit: &limit}, "none: ENABLE_POD_ENI is not true"},
		{"m5.large", &introspect.Trunk{Enabled: true, Supported: &yes, BranchLimit: &limit}, "none yet  branches -/9"},
		{"m5.large", &introspect.Trunk{Enabled: true, Supported: &yes, ENIID: "eni-1", BranchLimit: &limit, BranchUsed: &used}, "eni-1  branches 3/9"},
	} {
		if got := trunk(introspect.Summary{InstanceType: tt.kind, Trunk: tt.trunk}); got != tt.want {
			t.Errorf("%s %+v: %q, want %q", tt.kind, tt.trunk, got, tt.want)
		}
	}
}
