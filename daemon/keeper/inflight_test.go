package keeper

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/ipam"
	"cnictl/daemon/procedure"
	"cnictl/daemon/warmpool"
)

// TestKeeper_GivenBeforeTheReleaseIsAnswered: EC2 took an address back and gave it out
// again, on another ENI, and the first answer comes last. What else was given stays.
func TestKeeper_GivenBeforeTheReleaseIsAnswered(t *testing.T) {
	t.Parallel()
	moved, other := netip.MustParsePrefix("10.0.1.1/32"), netip.MustParsePrefix("10.0.2.1/32")
	newENI := ipam.ENI{ID: "eni-new", Device: 2, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.6"), RouteTable: 3}
	for _, row := range []struct {
		name string
		done func(op OpID) Message
	}{
		{"by an assign", func(op OpID) Message {
			return AssignDone{ID: op, Result: procedure.AssignResult{CIDRs: []netip.Prefix{moved, other}}}
		}},
		{"with a new ENI", func(op OpID) Message {
			return AttachDone{ID: op, Result: procedure.AttachResult{ENI: newENI, CIDRs: []netip.Prefix{moved, other}}}
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
			grow := b.start(Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: "eni-primary", IPs: 2}, Subnet: testSubnet}, b.clock)
			b.Handle(b.clock, row.done(grow.ID))
			b.Handle(b.clock, ReleaseDone{ID: release, Result: procedure.ReleaseResult{Gone: []netip.Prefix{moved}}})
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

// TestKeeper_ListOlderThanARelease: after an assign without an answer EC2 is asked for
// all that the ENI has, and its list is older than a release.
func TestKeeper_ListOlderThanARelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := secondary(3)
	b.apply(b.clock, ipam.AddCIDRs{ID: "eni-primary", CIDRs: all[:2]})
	b.startRelease("eni-primary", all[:1], warmpool.SurplusIPs, b.clock)
	b.Handle(b.clock, ReleaseDone{ID: b.lastOp, Result: procedure.ReleaseResult{Gone: all[:1]}})
	op := b.start(Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: "eni-primary", IPs: 1}, Subnet: testSubnet}, b.clock)
	b.Handle(b.clock, AssignDone{ID: op.ID, Result: procedure.AssignResult{CIDRs: all, All: true, Err: errors.New("no answer")}})
	var have []netip.Prefix
	for _, c := range b.book.Snapshot().ENIs[0].CIDRs {
		have = append(have, c.Prefix)
	}
	if !slices.Equal(have, all[1:]) {
		t.Errorf("the book has %v, want %v", have, all[1:])
	}
}
