package trunk_test

import (
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/vpc"
)

func TestBranch_ReachableThroughItsVLANAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	e, _ := l.branch(5)
	l.a.misses(anyAddr, e.PrimaryIP) // nothing answers there yet
	l.own(e, 5, e.MAC)
	l.a.reaches(anyAddr, e.PrimaryIP)
	l.b.reaches(e.PrimaryIP, l.a.primary.PrimaryIP)
	l.b.reaches(e.PrimaryIP, vpc.Gateway(l.subnet.CIDR))
	if len(e.IPv6s) != 1 {
		t.Fatalf("%+v", e)
	}
	l.a.reaches(anyAddr, e.IPv6s[0])
	l.b.reaches(e.IPv6s[0], l.a.primary.IPv6s[0])
	if id, ok := l.fabric.Instance(e.PrimaryIP); !ok || id != l.b.id {
		t.Errorf("Instance(%s) = %q, %v", e.PrimaryIP, id, ok)
	}
	if n := l.drops(e); n != 0 {
		t.Errorf("%d packets of the branch were dropped", n)
	}
}

// Frames to a branch carry the branch's MAC, so no other device accepts them.
func TestBranch_HasItsMAC(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	e, _ := l.branch(5)
	l.own(e, 5, l.trunk.MAC)
	l.a.misses(anyAddr, e.PrimaryIP)
	l.own(e, 5, e.MAC)
	l.a.reaches(anyAddr, e.PrimaryIP)
}

func TestBranch_SourceCheck(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	e, _ := l.branch(5)
	other, _ := l.branch(6)
	l.own(e, 5, e.MAC)
	l.own(other, 6, other.MAC)
	l.a.reaches(anyAddr, e.PrimaryIP)

	// The branch's address through another ENI: the packets are dropped.
	l.b.via(e.PrimaryIP, true)
	l.b.misses(e.PrimaryIP, l.a.primary.PrimaryIP)
	if l.drops(l.b.primary) == 0 {
		t.Error("nothing was counted for the primary ENI")
	}
	l.b.via(e.PrimaryIP, false)
	l.b.reaches(e.PrimaryIP, l.a.primary.PrimaryIP)

	// Another branch's address in the VLAN of this one, and an unassigned address.
	l.own(other, 5, e.MAC)
	l.own(e, 6, other.MAC)
	l.b.misses(other.PrimaryIP, l.a.primary.PrimaryIP)
	if l.drops(e) == 0 && l.drops(other) == 0 {
		t.Error("nothing was counted for the branches")
	}
}

func TestBranch_UnknownVLAN(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	e, _ := l.branch(5)
	l.own(e, 7, e.MAC)
	l.a.misses(anyAddr, e.PrimaryIP)
	l.b.misses(e.PrimaryIP, l.a.primary.PrimaryIP)
}

func TestBranch_VLANMovesToAnother(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first, was := l.branch(5)
	l.own(first, 5, first.MAC)
	l.a.reaches(anyAddr, first.PrimaryIP)
	l.disassociate(was)
	l.a.misses(anyAddr, first.PrimaryIP)

	second, _ := l.branch(5)
	l.own(second, 5, second.MAC)
	l.a.reaches(anyAddr, second.PrimaryIP)
	l.a.misses(anyAddr, first.PrimaryIP)
	l.b.misses(first.PrimaryIP, l.a.primary.PrimaryIP)

	// The first one comes back with another id.
	l.associate(first, 8, false)
	l.own(first, 8, first.MAC)
	l.a.reaches(anyAddr, first.PrimaryIP)
	l.a.reaches(anyAddr, second.PrimaryIP)
}

// If two branches have the same VLAN id, the later one has it until it is removed.
func TestBranch_VLANOfTwo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first, _ := l.branch(5)
	l.own(first, 5, first.MAC)
	second, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	collision := l.associate(second, 5, true)
	l.a.misses(anyAddr, first.PrimaryIP)
	l.own(second, 5, second.MAC)
	l.a.reaches(anyAddr, second.PrimaryIP)
	l.disassociate(collision)
	l.a.misses(anyAddr, second.PrimaryIP)
	l.own(first, 5, first.MAC)
	l.a.reaches(anyAddr, first.PrimaryIP)
}

func TestBranch_GoesAndComesWithItsTrunk(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	e, _ := l.branch(5)
	if err := l.fabric.Leave(l.b.id); err != nil {
		t.Fatal(err)
	}
	if links, err := l.fabric.Links(); err != nil || len(links) != 1 {
		t.Errorf("links after the host left: %v, %v", links, err)
	}
	l.a.misses(anyAddr, e.PrimaryIP)
	if err := l.fabric.Join(l.b.id, l.b.ns); err != nil {
		t.Fatal(err)
	}
	l.b.up(l.trunk)
	l.own(e, 5, e.MAC)
	l.a.reaches(anyAddr, e.PrimaryIP)

	// A fabric that starts later finds it.
	second, err := vpc.NewFabric(vpc.Options{World: l.world})
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := second.Instance(e.PrimaryIP); !ok || id != l.b.id {
		t.Errorf("Instance(%s) = %q, %v", e.PrimaryIP, id, ok)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	now, _ := l.world.ENI(l.trunk.ID)
	if err := l.world.DetachENI(now.Attachment.ID); err != nil {
		t.Fatal(err)
	}
	l.a.misses(anyAddr, e.PrimaryIP)
}

// Traffic outside branches is filtered as without VLANs.
func TestFabric_LegacyChecks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	unassigned := l.subnet.CIDR.Addr().Next().Next().Next() // reserved by AWS
	l.a.reaches(anyAddr, l.b.primary.PrimaryIP)
	l.a.own(unassigned)
	l.a.misses(unassigned, l.b.primary.PrimaryIP)
	if n := l.drops(l.a.primary); n == 0 {
		t.Error("nothing was counted")
	}
	if err := l.world.SetSourceDestCheck(l.a.primary.ID, false); err != nil {
		t.Fatal(err)
	}
	before := l.drops(l.a.primary)
	l.a.misses(unassigned, l.b.primary.PrimaryIP) // the answer has nowhere to go
	if n := l.drops(l.a.primary); n != before {
		t.Errorf("%d packets of an unchecked ENI were dropped", n-before)
	}
	if _, err := l.b.ns.AskEcho(t.Context(), "tcp", anyAddr, vpc.Outside, testenv.Left(t)); err != nil {
		t.Error(err)
	}
	extra, err := l.world.Assign(l.b.primary.ID, fakeaws.AssignSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	l.b.own(extra[0].Addr())
	l.b.misses(extra[0].Addr(), vpc.Outside.Addr())
	if n, err := l.fabric.PrivateDrops(); err != nil || n == 0 {
		t.Errorf("%d packets of a private address, %v", n, err)
	}
}
