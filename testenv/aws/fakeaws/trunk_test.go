package fakeaws

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// trunked returns a world with an instance that has a trunk at its highest device index.
func trunked(t *testing.T, s TrunkSpec) (w *World, i *Instance, trunk ENI) {
	t.Helper()
	w = NewWorld(Options{})
	t.Cleanup(w.Close)
	v := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	n, err := w.AddSubnet(SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/24"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1::/64"), AssignIPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	i, err = w.AddInstance(InstanceSpec{Type: "m5.large", SubnetID: n.ID})
	if err != nil {
		t.Fatal(err)
	}
	s.InstanceID, s.Device = i.ID, 2
	trunk, err = w.AddTrunk(s)
	if err != nil {
		t.Fatal(err)
	}
	return w, i, trunk
}

func branchOf(t *testing.T, w *World, i *Instance) ENI {
	t.Helper()
	e, err := w.CreateENI(ENISpec{SubnetID: i.SubnetID})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestAssociateBranch(t *testing.T) {
	t.Parallel()
	w, i, trunk := trunked(t, TrunkSpec{})
	var changes []Change
	t.Cleanup(w.Subscribe(func(c Change) { changes = append(changes, c) }))
	b := branchOf(t, w, i)
	if len(b.IPv6s) != 1 {
		t.Errorf("the subnet assigned %v", b.IPv6s)
	}
	a, err := w.AssociateBranch(AssociateSpec{Trunk: trunk.ID, Branch: b.ID, VLAN: 1})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ = w.ENI(b.ID); b.Type != "branch" || b.Status != "in-use" || b.Attachment != (Attachment{}) {
		t.Errorf("branch %+v", b)
	}
	if got := w.Associations(trunk.ID); !slices.Equal(got, []Association{a}) || a.VLAN != 1 || a.Branch != b.ID {
		t.Errorf("associations %+v", got)
	}
	if err := w.DisassociateBranch(a.ID); err != nil {
		t.Fatal(err)
	}
	if b, _ = w.ENI(b.ID); b.Type != "interface" || b.Status != "available" {
		t.Errorf("after disassociation %+v", b)
	}
	wantCode(t, w.DisassociateBranch(a.ID), "InvalidAssociationID.NotFound")
	if len(changes) != 2 || changes[0].Kind != BranchAssociated || changes[1].Kind != BranchDisassociated || changes[0].Branch != a || changes[0].Instance.ID != i.ID {
		t.Errorf("changes %+v", changes)
	}
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}

func TestAssociateBranch_Refuses(t *testing.T) {
	t.Parallel()
	w, i, trunk := trunked(t, TrunkSpec{})
	used := branchOf(t, w, i)
	if _, err := w.AssociateBranch(AssociateSpec{Trunk: trunk.ID, Branch: used.ID, VLAN: 7}); err != nil {
		t.Fatal(err)
	}
	free := branchOf(t, w, i)
	for _, row := range []struct {
		name string
		spec AssociateSpec
		code string
	}{
		{"no trunk", AssociateSpec{Trunk: "eni-0", Branch: free.ID, VLAN: 1}, codeENINotFound},
		{"no branch", AssociateSpec{Trunk: trunk.ID, Branch: "eni-0", VLAN: 1}, codeENINotFound},
		{"trunk is ordinary", AssociateSpec{Trunk: i.PrimaryENI, Branch: free.ID, VLAN: 1}, codeInvalidCombination},
		{"branch in use", AssociateSpec{Trunk: trunk.ID, Branch: used.ID, VLAN: 1}, codeENIInUse},
		{"VLAN 0", AssociateSpec{Trunk: trunk.ID, Branch: free.ID}, codeInvalidValue},
		{"VLAN 4095", AssociateSpec{Trunk: trunk.ID, Branch: free.ID, VLAN: 4095}, codeInvalidValue},
		{"VLAN in use", AssociateSpec{Trunk: trunk.ID, Branch: free.ID, VLAN: 7}, codeInvalidValue},
	} {
		_, err := w.AssociateBranch(row.spec)
		t.Run(row.name, func(t *testing.T) { wantCode(t, err, row.code) })
	}
	if _, err := w.AssociateBranch(AssociateSpec{Trunk: trunk.ID, Branch: free.ID, VLAN: 7, Collide: true}); err != nil {
		t.Error(err)
	}
}

func TestAssociateBranch_HoldsToTheTypesLimit(t *testing.T) {
	t.Parallel()
	w, i, trunk := trunked(t, TrunkSpec{})
	l, _ := w.InstanceLimits(i.ID)
	if l.BranchENIs != 9 { // m5.large
		t.Fatalf("limit %d", l.BranchENIs)
	}
	for vlan := 1; vlan <= l.BranchENIs; vlan++ {
		if _, err := w.AssociateBranch(AssociateSpec{Trunk: trunk.ID, Branch: branchOf(t, w, i).ID, VLAN: vlan}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.AssociateBranch(AssociateSpec{Trunk: trunk.ID, Branch: branchOf(t, w, i).ID, VLAN: 100})
	wantCode(t, err, codeAttachLimit)
}

func TestDissolve_WithBranchAndWithTrunk(t *testing.T) {
	t.Parallel()
	w, i, trunk := trunked(t, TrunkSpec{MetadataAfter: time.Hour})
	first, second := branchOf(t, w, i), branchOf(t, w, i)
	for vlan, b := range []ENI{first, second} {
		if _, err := w.AssociateBranch(AssociateSpec{Trunk: trunk.ID, Branch: b.ID, VLAN: vlan + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.DeleteENI(first.ID); err != nil {
		t.Fatal(err)
	}
	if got := w.Associations(trunk.ID); len(got) != 1 || got[0].Branch != second.ID {
		t.Errorf("associations %+v", got)
	}
	if err := w.RemoveInstance(i.ID); err != nil {
		t.Fatal(err)
	}
	if e, there := w.ENI(second.ID); !there || e.Status != "available" || len(w.Associations(trunk.ID)) != 0 {
		t.Errorf("left behind: %+v %t", e, there)
	}
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}
