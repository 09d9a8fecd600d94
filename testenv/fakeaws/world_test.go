package fakeaws_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
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

func TestWorld_Deterministic(t *testing.T) {
	t.Parallel()
	build := func() fakeaws.Snapshot {
		w, v := newWorld(t, fakeaws.Options{})
		n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
		i := addInstance(t, w, "m5.large", n.ID)
		e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID, IPs: 2})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Device: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Assign(e.ID, fakeaws.AssignSpec{PrefixCount: 1}); err != nil {
			t.Fatal(err)
		}
		return w.Snapshot()
	}
	one, two := build(), build()
	if diff := cmp.Diff(one, two, compareNetip); diff != "" {
		t.Errorf("two builds differ:\n%s", diff)
	}
	e := one.ENIs[1]
	want := fakeaws.ENI{ID: "eni-0fa4e000000000002", MAC: "02:fa:4e:00:00:02", SubnetID: "subnet-0fa4e000000000001", VPCID: "vpc-0fa4e000000000001",
		AZ: "us-west-2a", Type: "interface", Status: "in-use", PrimaryIP: netip.MustParseAddr("10.0.0.5"),
		SecondaryIPs: []netip.Addr{netip.MustParseAddr("10.0.0.6"), netip.MustParseAddr("10.0.0.7")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")},
		SecurityGroups: []string{"sg-0fa4e000000000001"}, SourceDestCheck: true, Tags: map[string]string{},
		Attachment: fakeaws.Attachment{ID: "eni-attach-0fa4e000000000002", InstanceID: "i-0fa4e000000000001", Device: 1, Status: "attached"}}
	if diff := cmp.Diff(want, e, compareNetip); diff != "" {
		t.Errorf("ENI (-want +got):\n%s", diff)
	}
	if got, want := one.Subnets[0].Free, 256-5-1-3-16; got != want {
		t.Errorf("free = %d, want %d", got, want)
	}
}

func TestWorld_SubnetSpace(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{})
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/27")
	if n.Free != 27 {
		t.Fatalf("a /27 has %d free addresses, want 27", n.Free)
	}
	e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Assign(e.ID, fakeaws.AssignSpec{PrefixCount: 1}); codeOf(err) != "InsufficientCidrBlocks" {
		t.Errorf("a /27 holds no /28 between the reserved addresses, got %v", err)
	}
	if _, err := w.Assign(e.ID, fakeaws.AssignSpec{Count: 27}); codeOf(err) != "InsufficientFreeAddressesInSubnet" {
		t.Errorf("27 of 26 free addresses: %v", err)
	}
	w.SetExhaustedAsValue(true)
	if _, err := w.Assign(e.ID, fakeaws.AssignSpec{Count: 27}); codeOf(err) != "InvalidParameterValue" {
		t.Errorf("27 of 26 free addresses: %v", err)
	}
	got, err := w.Assign(e.ID, fakeaws.AssignSpec{Count: 26})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := got[0], got[25]; first.String() != "10.0.0.5/32" || last.String() != "10.0.0.30/32" {
		t.Errorf("assigned %s to %s, want 10.0.0.5 to 10.0.0.30", first, last)
	}
	if err := w.Unassign(e.ID, got[3]); err != nil {
		t.Fatal(err)
	}
	again, err := w.Assign(e.ID, fakeaws.AssignSpec{Count: 1})
	if err != nil || again[0] != got[3] {
		t.Errorf("assigned %v (%v), want the freed %s", again, err, got[3])
	}
}

func TestWorld_Fragment(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{})
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
	e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Fragment(n.ID); err != nil {
		t.Fatal(err)
	}
	if s, _ := w.Subnet(n.ID); s.Free != 251-1-14 {
		t.Errorf("free = %d, want %d", s.Free, 251-1-14)
	}
	if _, err := w.Assign(e.ID, fakeaws.AssignSpec{PrefixCount: 1}); codeOf(err) != "InsufficientCidrBlocks" {
		t.Errorf("prefix of a fragmented subnet: %v", err)
	}
	if err := w.Vacate(n.ID); err != nil {
		t.Fatal(err)
	}
	got, err := w.Assign(e.ID, fakeaws.AssignSpec{PrefixCount: 14})
	if err != nil || len(got) != 14 || got[0].String() != "10.0.0.16/28" {
		t.Errorf("assigned %v (%v), want 14 prefixes from 10.0.0.16/28", got, err)
	}
	taken, err := w.Occupy(n.ID, 1000)
	if s, _ := w.Subnet(n.ID); err != nil || s.Free != 0 || taken != 251-1-14*16 {
		t.Errorf("occupied %d (%v), %d free", taken, err, s.Free)
	}
	for _, a := range []string{"10.0.0.4", "10.0.0.17", "10.0.0.239"} {
		if o, ok := w.OwnerOf(netip.MustParseAddr(a)); !ok || o.ID != e.ID {
			t.Errorf("owner of %s is %q, want %s", a, o.ID, e.ID)
		}
	}
	if o, ok := w.OwnerOf(netip.MustParseAddr("10.0.0.240")); ok {
		t.Errorf("owner of 10.0.0.240 is %s, want none", o.ID)
	}
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

func TestWorld_Cards(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{})
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
	i := addInstance(t, w, "i7ie.48xlarge", n.ID) // two cards of 8 and 7
	for card, room := range []int{7, 7} {         // the primary is on card 0
		for device := 1; device <= room+1; device++ {
			e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID})
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Card: card, Device: device})
			if want := map[bool]string{true: "AttachmentLimitExceeded"}[device > room]; codeOf(err) != want {
				t.Errorf("card %d device %d: %v, want %q", card, device, err, want)
			}
		}
	}
}

func TestWorld_Subscribe(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{})
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
	var got []string
	cancel := w.Subscribe(func(c fakeaws.Change) {
		got = append(got, fmt.Sprint(c.Kind, " ", c.Instance.ID, " ", c.ENI.ID, " ", c.CIDRs, " ", len(w.ENIs()))) // subscribers may read the world
	})
	i := addInstance(t, w, "m5.large", n.ID)
	e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID})
	if err != nil {
		t.Fatal(err)
	}
	at, err := w.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Device: 1, DeleteOnTermination: true})
	if err != nil {
		t.Fatal(err)
	}
	cidrs, err := w.Assign(e.ID, fakeaws.AssignSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Unassign(e.ID, cidrs...), w.SetSourceDestCheck(e.ID, false), w.DetachENI(at), w.DeleteENI(e.ID), w.RemoveInstance(i.ID)); err != nil {
		t.Fatal(err)
	}
	cancel()
	addInstance(t, w, "m5.large", n.ID)
	const in, p, s = "i-0fa4e000000000001", "eni-0fa4e000000000001", "eni-0fa4e000000000002"
	want := []string{
		"instance-added " + in + "  [] 1", "eni-attached " + in + " " + p + " [] 1",
		"eni-attached " + in + " " + s + " [] 2", "cidrs-assigned " + in + " " + s + " [10.0.0.6/32] 2", "cidrs-unassigned " + in + " " + s + " [10.0.0.6/32] 2",
		"eni-modified " + in + " " + s + " [] 2", "eni-detached " + in + " " + s + " [] 2",
		"eni-detached " + in + " " + p + " [] 0", "instance-removed " + in + "  [] 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestWorld_AttachDelay(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t, fakeaws.Options{AttachDelay: 20 * time.Millisecond, DetachDelay: 20 * time.Millisecond})
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24")
	i := addInstance(t, w, "m5.large", n.ID)
	changes := make(chan fakeaws.Change, 10)
	defer w.Subscribe(func(c fakeaws.Change) { changes <- c })()
	e, err := w.CreateENI(fakeaws.ENISpec{SubnetID: n.ID})
	if err != nil {
		t.Fatal(err)
	}
	at, err := w.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Device: 1})
	if err != nil {
		t.Fatal(err)
	}
	wait := func(kind fakeaws.ChangeKind, status string) {
		t.Helper()
		if c := testenv.Receive(t, string(kind), changes); c.Kind != kind || c.ENI.Attachment.Status != status {
			t.Fatalf("%s %q, want %s %q", c.Kind, c.ENI.Attachment.Status, kind, status)
		}
	}
	wait(fakeaws.ENIAttached, "attached")
	if err := w.DetachENI(at); err != nil {
		t.Fatal(err)
	}
	wait(fakeaws.ENIDetached, "detaching")
	if got, _ := w.ENI(e.ID); got.Status != "available" || got.Attachment.ID != "" {
		t.Errorf("after detaching: %+v", got)
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

// Random operations keep the invariants, whatever they return.
func TestWorld_Property(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		w, v := newWorld(t, fakeaws.Options{})
		g := &gambler{World: w, rand: rand.New(rand.NewPCG(seed, 1)), vpc: v.ID}
		g.subnets = []string{addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID, IPv6CIDR: netip.MustParsePrefix("2001:db8:0:1::/64")}, "10.0.0.0/25").ID,
			addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.1.0/26").ID}
		failed := map[string]int{}
		for step := range 300 {
			name, err := g.step()
			if err != nil && codeOf(err) == "" {
				t.Fatalf("seed %d step %d: %s: %v is no EC2 error", seed, step, name, err)
			}
			failed[codeOf(err)]++
			if err := w.Check(); err != nil {
				t.Fatalf("seed %d step %d, after %s: %v", seed, step, name, err)
			}
		}
		if failed[""] < 50 {
			t.Errorf("seed %d: only %d of 300 operations worked: %v", seed, failed[""], failed)
		}
		drain(t, w)
	}
}

// drain removes everything; then every address must be free.
func drain(t *testing.T, w *fakeaws.World) {
	t.Helper()
	s := w.Snapshot()
	for _, i := range s.Instances {
		if err := w.RemoveInstance(i.ID); err != nil {
			t.Error(err)
		}
	}
	for _, e := range w.ENIs() {
		if err := w.DeleteENI(e.ID); err != nil {
			t.Error(err)
		}
	}
	for _, n := range s.Subnets {
		if err := w.Vacate(n.ID); err != nil {
			t.Error(err)
		}
		if now, _ := w.Subnet(n.ID); now.Free != 1<<(32-n.CIDR.Bits())-5 {
			t.Errorf("%s has %d free addresses when empty", n.CIDR, now.Free)
		}
	}
}

type gambler struct {
	*fakeaws.World
	rand    *rand.Rand
	vpc     string
	subnets []string
}

func pickOne[T any](g *gambler, all []T) (one T) {
	if len(all) > 0 {
		one = all[g.rand.IntN(len(all))]
	}
	return one
}

func (g *gambler) step() (string, error) {
	s := g.Snapshot()
	e, i, n := pickOne(g, s.ENIs), pickOne(g, s.Instances), pickOne(g, g.subnets)
	switch g.rand.IntN(13) {
	case 0:
		_, err := g.AddInstance(fakeaws.InstanceSpec{Type: pickOne(g, []string{"m5.large", "t3.small", "m4.large", "i7ie.48xlarge", "none"}), SubnetID: n})
		return "add instance", err
	case 1:
		if g.rand.IntN(4) > 0 {
			return "nothing", nil
		}
		return "remove instance", g.RemoveInstance(i.ID)
	case 2, 3:
		_, err := g.CreateENI(fakeaws.ENISpec{SubnetID: n, IPs: g.rand.IntN(6), IPv6s: g.rand.IntN(2)})
		return "create", err
	case 4:
		_, err := g.CreateENI(fakeaws.ENISpec{SubnetID: n, Prefixes: g.rand.IntN(3), PrimaryIP: pickOne(g, []netip.Addr{{}, netip.MustParseAddr("10.0.0.77"), netip.MustParseAddr("10.0.1.20")})})
		return "create with prefixes", err
	case 5, 6:
		_, err := g.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Card: g.rand.IntN(8) / 7, Device: g.rand.IntN(4), DeleteOnTermination: g.rand.IntN(2) == 0})
		return "attach", err
	case 7:
		return "detach", g.DetachENI(e.Attachment.ID)
	case 8:
		return "delete", g.DeleteENI(e.ID)
	case 9, 10:
		a := fakeaws.AssignSpec{Count: g.rand.IntN(4), PrefixCount: g.rand.IntN(2), IPv6Prefixes: g.rand.IntN(2)}
		if other := pickOne(g, s.ENIs); g.rand.IntN(4) == 0 && len(other.SecondaryIPs) > 0 {
			a = fakeaws.AssignSpec{Addresses: slices.Clone(other.SecondaryIPs[:1]), Reassign: true}
		}
		_, err := g.Assign(e.ID, a)
		return "assign", err
	case 11:
		all := e.CIDRs()
		g.rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		return "unassign", g.Unassign(e.ID, all[:min(len(all), 1+g.rand.IntN(3))]...)
	default:
		switch g.rand.IntN(3) {
		case 0:
			_, err := g.Occupy(n, g.rand.IntN(20))
			return "occupy", err
		case 1:
			return "fragment", g.Fragment(n)
		}
		return "vacate", g.Vacate(n)
	}
}
