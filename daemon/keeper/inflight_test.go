package keeper

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// TestKeeper_GivenBeforeTheReleaseIsAnswered: EC2 released an address and assigned it to
// another ENI, and the release's answer arrives last. The other assigned addresses stay.
func TestKeeper_GivenBeforeTheReleaseIsAnswered(t *testing.T) {
	t.Parallel()
	moved, other := netip.MustParsePrefix("10.0.1.1/32"), netip.MustParsePrefix("10.0.2.1/32")
	newENI := ipam.ENI{ID: "eni-new", Device: 2, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.6"), RouteTable: 3}
	for _, row := range []struct {
		name string
		done func(op OpID) Message
	}{
		{"by an assign", func(op OpID) Message {
			return AssignDone{ID: op, CIDRs: []netip.Prefix{moved, other}}
		}},
		{"with a new ENI", func(op OpID) Message {
			return AttachDone{ID: op, ENI: newENI, CIDRs: []netip.Prefix{moved, other}}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.apply(b.clock, ipam.AttachENI{
				ENI:   ipam.ENI{ID: "eni-old", Device: 1, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.5"), RouteTable: 2},
				CIDRs: []netip.Prefix{moved},
			})
			b.startRelease("eni-old", []netip.Prefix{moved}, warmpool.SurplusIPs, b.clock)
			release := b.lastOp
			grow := b.start(Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: "eni-primary", IPs: 2, SubnetID: testSubnet}}, b.clock)
			b.Handle(b.clock, row.done(grow.ID))
			b.Handle(b.clock, ReleaseDone{ID: release, Gone: []netip.Prefix{moved}})
			found, left := false, 0
			for _, e := range b.book.Snapshot().ENIs {
				for _, c := range e.CIDRs {
					found = found || c.Prefix == other
					if c.Prefix == moved && e.ID == "eni-old" {
						t.Errorf("%s still has %v", e.ID, moved)
					}
					left++
				}
			}
			if !found || left != 2 {
				t.Errorf("the book has %d addresses, %v among them: %v; want what was given", left, other, found)
			}
		})
	}
}

// TestKeeper_GivenBeforeTheDetachIsAnswered: another node's sweep deleted an ENI as soon as
// it was detached, and EC2 assigned its address to another ENI before the detach was known
// to have ended. The address takes a slot there, though the book does not have it yet.
func TestKeeper_GivenBeforeTheDetachIsAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	moved := secondary(1)
	b.apply(b.clock, ipam.AttachENI{
		ENI:   ipam.ENI{ID: "eni-old", Device: 1, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.5"), RouteTable: 2},
		CIDRs: moved,
	})
	b.startDetach(warmpool.DetachENI{ENI: "eni-old", Reason: warmpool.SurplusENI}, b.clock)
	detach := b.lastOp
	grow := b.start(Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: "eni-primary", IPs: 1, SubnetID: testSubnet}}, b.clock)
	b.Handle(b.clock, AssignDone{ID: grow.ID, CIDRs: moved})
	if n := b.misplaced()["eni-primary"]; n != 1 {
		t.Errorf("%d addresses are on the ENI beside those of the book, want 1", n)
	}
	b.Handle(b.clock, DetachDone{ID: detach})
	if n := b.misplaced()["eni-primary"]; n != 1 {
		t.Errorf("%d after the end of the detach, want 1 until EC2 is asked", n)
	}
}

// TestKeeper_PrefixMovedWithPods: others took a prefix with pods off an ENI, and EC2
// assigned it to a new one. The new ENI is full although the book cannot have the prefix
// twice: once EC2 has shown where the prefix is, the daemon requests no more for that ENI
// until it is gone.
func TestKeeper_PrefixMovedWithPods(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.PrefixDelegation, b.policy.WarmENI, b.policy.WarmPrefix = true, 0, 1
	b.limits = warmpool.Limits{IPv4PerENI: 2, ENIsByCard: []int{2}}
	moved := []netip.Prefix{netip.MustParsePrefix("10.0.1.0/28")}
	b.apply(b.clock, ipam.AddCIDRs{ID: "eni-primary", CIDRs: moved})
	pod := b.add("a", 0)
	b.send(pod.Add)
	b.write(nil)
	if op := b.only(); op.Kind != warmpool.PendingAttach {
		t.Fatalf("%+v, want an attach", op)
	}
	added := ipam.ENI{ID: "eni-new", Device: 1, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.6"), RouteTable: 2}
	b.send(AttachDone{ID: b.only().ID, ENI: added, CIDRs: moved})
	if len(b.ops) == 0 {
		t.Error("the new ENI counts as full before EC2 has shown that the prefix left the other")
	}
	show := func(prefixes []netip.Prefix) {
		t.Helper()
		for asked := false; !asked; {
			b.observe()
			task, _ := last[ObserveTask](b)
			asked = task.EC2
			v := Observed{AskedEC2: asked, Links: []string{link("a"), "lo"}, Routes: []resync.PodRoute{{
				Address: netip.MustParseAddr(pod.got(t).Allocations[0].IPv4), HostLink: link("a"),
			}}}
			_, v.ENIs = attachedView(nil)
			v.ENIs = append(v.ENIs, resync.ENI{
				ID: added.ID, Device: 1, Status: "in-use", SubnetID: testSubnet, InstanceID: v.ENIs[0].InstanceID, AttachmentID: "eni-attach-2",
				AttachmentStatus: resync.AttachmentAttached, PrimaryIP: added.PrimaryIP, Prefixes: prefixes, Tags: map[string]string{resync.TagInstanceID: v.ENIs[0].InstanceID},
			})
			b.recon.needEC2 = true
			b.send(v)
		}
	}
	refuse := func() {
		if len(b.ops) > 0 {
			b.send(AssignDone{ID: b.only().ID, CIDRs: moved, All: true, Full: true})
		}
	}
	for recorded[Quarantined](b) == 0 {
		refuse()
		show(moved)
	}
	refuse()
	for range 10 {
		show(moved)
		b.pass(ExhaustedMax)
		if len(b.ops) > 0 {
			t.Fatalf("asks for more on a full ENI: %+v", b.only())
		}
	}
	show(nil)
	if op := b.only(); op.Kind != warmpool.PendingAssign || op.ENI != added.ID {
		t.Errorf("%+v, want a prefix for %s, which has none", op, added.ID)
	}
}

// TestKeeper_ListOlderThanARelease: after an assign without an answer EC2 is asked for all
// of the ENI's addresses, and its list predates a release.
func TestKeeper_ListOlderThanARelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := secondary(3)
	b.apply(b.clock, ipam.AddCIDRs{ID: "eni-primary", CIDRs: all[:2]})
	b.startRelease("eni-primary", all[:1], warmpool.SurplusIPs, b.clock)
	b.Handle(b.clock, ReleaseDone{ID: b.lastOp, Gone: all[:1]})
	op := b.start(Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: "eni-primary", IPs: 1, SubnetID: testSubnet}}, b.clock)
	b.Handle(b.clock, AssignDone{ID: op.ID, CIDRs: all, All: true, Err: errors.New("no answer")})
	var have []netip.Prefix
	for _, c := range b.book.Snapshot().ENIs[0].CIDRs {
		have = append(have, c.Prefix)
	}
	if !slices.Equal(have, all[1:]) {
		t.Errorf("the book has %v, want %v", have, all[1:])
	}
}
