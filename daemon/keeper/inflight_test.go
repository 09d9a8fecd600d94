package keeper

import (
	"net/netip"
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
