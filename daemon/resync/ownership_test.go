package resync

import "testing"

func TestOwner(t *testing.T) {
	t.Parallel()
	const self, other = "i-0123456789abcdef0", "i-0fedcba9876543210"
	rows := []struct {
		name string
		in   OwnershipInput
		want Ownership
	}{
		{"primary, whatever its tags", OwnershipInput{Primary: true, Tags: map[string]string{TagNoManage: "true"}}, Managed},
		{"no_manage=true", OwnershipInput{Tags: map[string]string{TagNoManage: "true"}, ManageUntagged: true}, Unmanaged},
		{"no_manage with another value", OwnershipInput{Tags: map[string]string{TagNoManage: "no"}}, Managed},
		{"tagged with this instance", OwnershipInput{Tags: map[string]string{TagInstanceID: self}}, Managed},
		{"tagged with another instance", OwnershipInput{Tags: map[string]string{TagInstanceID: other}}, Unmanaged},
		{"untagged, adopted", OwnershipInput{ManageUntagged: true}, Managed},
		{"untagged, left alone", OwnershipInput{}, Unmanaged},
		{"efa-only", OwnershipInput{Type: TypeEFAOnly, ManageUntagged: true}, Unmanaged},
		{"efa", OwnershipInput{Type: TypeEFA, ManageUntagged: true}, Managed},
		{"second card without multi-NIC", OwnershipInput{Card: 1, ManageUntagged: true}, Ignored},
		{"second card with multi-NIC", OwnershipInput{Card: 1, MultiNIC: true, ManageUntagged: true}, Managed},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			in := row.in
			in.InstanceID = self
			if got := Owner(in); got != row.want {
				t.Errorf("Owner(%+v) = %v, want %v", in, got, row.want)
			}
		})
	}
}
