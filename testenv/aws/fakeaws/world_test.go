package fakeaws_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/aws/fakeaws"
)

var compareNetip = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}

// newWorld returns a world with one VPC and checks its invariants when the test ends.
func newWorld(t testing.TB, o fakeaws.Options) (*fakeaws.World, fakeaws.VPC) {
	t.Helper()
	w := fakeaws.NewWorld(o)
	t.Cleanup(func() {
		w.Close()
		if err := w.Check(); err != nil {
			t.Errorf("world: %v", err)
		}
	})
	return w, w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/56"))
}

func addSubnet(t testing.TB, w *fakeaws.World, s fakeaws.SubnetSpec, cidr string) fakeaws.Subnet {
	t.Helper()
	s.CIDR = netip.MustParsePrefix(cidr)
	n, err := w.AddSubnet(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func addInstance(t testing.TB, w *fakeaws.World, kind, subnetID string) *fakeaws.Instance {
	t.Helper()
	i, err := w.AddInstance(fakeaws.InstanceSpec{Type: kind, SubnetID: subnetID})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func codeOf(err error) string {
	var e *fakeaws.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestWorld_Attach(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{})
	a := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
	b := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID, AZ: "us-west-2b"}, "10.0.1.0/24")
	i := addInstance(t, w, "m5.large", a.ID) // 3 ENIs of 10 addresses
	create := func(s fakeaws.ENISpec) string {
		e, err := w.CreateENI(s)
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	attach := func(id string, card, device int) error {
		_, err := w.AttachENI(fakeaws.AttachSpec{ENIID: id, InstanceID: i.ID, Card: card, Device: device})
		return err
	}
	one := create(fakeaws.ENISpec{SubnetID: a.ID, IPs: 9})
	tests := []struct {
		name         string
		eni          string
		card, device int
		want         string
	}{
		{"missing ENI", "eni-0fa4e0000000000ff", 0, 1, "InvalidNetworkInterfaceID.NotFound"},
		{"device taken", one, 0, 0, "InvalidParameterValue"},
		{"no such card", one, 1, 0, "InvalidParameterValue"},
		{"other zone", create(fakeaws.ENISpec{SubnetID: b.ID}), 0, 1, "InvalidParameterCombination"},
		{"too many addresses", create(fakeaws.ENISpec{SubnetID: a.ID, IPs: 10}), 0, 1, "PrivateIpAddressLimitExceeded"},
		{"fits", one, 0, 1, ""},
		{"in use", one, 0, 2, "InvalidNetworkInterface.InUse"},
		{"last slot", create(fakeaws.ENISpec{SubnetID: a.ID}), 0, 7, ""},
		{"limit", create(fakeaws.ENISpec{SubnetID: a.ID}), 0, 3, "AttachmentLimitExceeded"},
	}
	for _, tt := range tests {
		if err := attach(tt.eni, tt.card, tt.device); codeOf(err) != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := w.Assign(one, fakeaws.AssignSpec{Count: 1}); codeOf(err) != "PrivateIpAddressLimitExceeded" {
		t.Errorf("an eleventh address: %v", err)
	}
	if err := w.DeleteENI(one); codeOf(err) != "InvalidParameterValue" {
		t.Errorf("delete while attached: %v", err)
	}
	primary, _ := w.ENI(i.PrimaryENI)
	if err := w.DetachENI(primary.Attachment.ID); codeOf(err) != "OperationNotPermitted" {
		t.Errorf("detach the primary: %v", err)
	}
	e, _ := w.ENI(one)
	if err := w.DetachENI(e.Attachment.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.DetachENI(e.Attachment.ID); codeOf(err) != "InvalidAttachmentID.NotFound" {
		t.Errorf("detach again: %v", err)
	}
	if err := w.DeleteENI(one); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteENI(one); codeOf(err) != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("delete again: %v", err)
	}
}

func TestWorld_RemoveInstance(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{})
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
	i := addInstance(t, w, "m5.large", n.ID)
	var ids []string
	for device := 1; device <= 2; device++ {
		e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID})
		if err != nil {
			t.Fatal(err)
		}
		at, err := w.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Device: device})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.SetDeleteOnTermination(e.ID, at, device == 1); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if err := w.RemoveInstance(i.ID); err != nil {
		t.Fatal(err)
	}
	left := w.ENIs()
	if len(left) != 1 || left[0].ID != ids[1] || left[0].Status != "available" {
		t.Errorf("left after termination: %+v, want %s available", left, ids[1])
	}
}
