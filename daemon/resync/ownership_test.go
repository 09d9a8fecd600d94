package resync

import (
	"slices"
	"testing"
)

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

// TestEFAOnlyCards: a card with no ENI usable by the daemon other than an efa-only one
// serves no addresses. Unused cards do not count, and the first card always serves.
func TestEFAOnlyCards(t *testing.T) {
	t.Parallel()
	owner := func(e *ENI) Ownership {
		return Owner(OwnershipInput{Primary: e.ID == "eni-0", Card: e.Card, Type: InterfaceType(e.InterfaceType), Tags: e.Tags, ManageUntagged: true, MultiNIC: true})
	}
	all := []ENI{
		{ID: "eni-0"}, {ID: "eni-1", Device: 1, InterfaceType: string(TypeEFAOnly)},
		{ID: "eni-2", Card: 2, InterfaceType: string(TypeEFAOnly)},
		{ID: "eni-3", Card: 1, InterfaceType: string(TypeEFAOnly)}, {ID: "eni-4", Card: 1, Device: 1},
		{ID: "eni-5", Card: 3, Tags: map[string]string{TagNoManage: "true"}},
	}
	if got := EFAOnlyCards(all, owner); !slices.Equal(got, []int{2}) {
		t.Errorf("cards %v, want 2 alone", got)
	}
	unused := func(*ENI) Ownership { return Ignored }
	if got := EFAOnlyCards(all, unused); len(got) > 0 {
		t.Errorf("cards %v though none is used", got)
	}
}
