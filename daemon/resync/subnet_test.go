package resync

import (
	"slices"
	"testing"
)

func TestSubnetPolicy(t *testing.T) {
	t.Parallel()
	const own, other = "subnet-own", "subnet-other"
	rows := []struct {
		name             string
		policy           SubnetPolicy
		subnet           Subnet
		usable, excluded bool
	}{
		{"own, no tag", SubnetPolicy{Discovery: true}, Subnet{ID: own}, true, false},
		{"other, no tag", SubnetPolicy{Discovery: true}, Subnet{ID: other}, false, false},
		{"own, empty role", SubnetPolicy{Discovery: true}, Subnet{ID: own, Tags: map[string]string{TagSubnetRole: ""}}, true, false},
		{"own, role 0", SubnetPolicy{Discovery: true}, Subnet{ID: own, Tags: map[string]string{TagSubnetRole: "0"}}, false, true},
		{"own, role 0, discovery off", SubnetPolicy{}, Subnet{ID: own, Tags: map[string]string{TagSubnetRole: "0"}}, false, true},
		{"other, role 1", SubnetPolicy{Discovery: true}, Subnet{ID: other, Tags: map[string]string{TagSubnetRole: "1"}}, true, false},
		{"other, role 1, discovery off", SubnetPolicy{}, Subnet{ID: other, Tags: map[string]string{TagSubnetRole: "1"}}, false, false},
		{"other cluster's subnet", SubnetPolicy{Discovery: true, ClusterName: "blue"},
			Subnet{ID: other, Tags: map[string]string{TagSubnetRole: "1", TagSubnetCluster + "green": "shared"}}, false, true},
		{"shared by two clusters", SubnetPolicy{Discovery: true, ClusterName: "blue"},
			Subnet{ID: other, Tags: map[string]string{TagSubnetRole: "1", TagSubnetCluster + "green": "", TagSubnetCluster + "blue": ""}}, true, false},
		{"cluster tags, own name unknown", SubnetPolicy{Discovery: true},
			Subnet{ID: other, Tags: map[string]string{TagSubnetRole: "1", TagSubnetCluster + "green": ""}}, true, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.policy.NodeSubnet = own
			if got := row.policy.Usable(row.subnet); got != row.usable {
				t.Errorf("Usable = %v, want %v", got, row.usable)
			}
			if got := row.policy.Excluded(row.subnet); got != row.excluded {
				t.Errorf("Excluded = %v, want %v", got, row.excluded)
			}
		})
	}
}

func TestCandidates_FullestLast(t *testing.T) {
	t.Parallel()
	p := SubnetPolicy{NodeSubnet: "a", Discovery: true}
	tagged := map[string]string{TagSubnetRole: "1"}
	var ids []string
	for _, s := range p.Candidates([]Subnet{{ID: "a", AvailableIPs: 5}, {ID: "c", AvailableIPs: 90, Tags: tagged}, {ID: "b", AvailableIPs: 90, Tags: tagged}, {ID: "d"}}) {
		ids = append(ids, s.ID)
	}
	if want := []string{"b", "c", "a"}; !slices.Equal(ids, want) {
		t.Errorf("candidates %v, want %v", ids, want)
	}
}
