package keeper

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/warmpool"
)

// TestSubnets_NotListed: without permission to describe subnets the node grows in its own
// subnet, reports the failure once per try, and does not retry in a loop.
func TestSubnets_NotListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.subnets = subnetCache{few: b.subnets.few}
	a := b.add("a", 10*time.Second)
	b.send(a.Add)
	b.send(SubnetsRead{Err: failed(cause.EC2Unauthorized)})
	if recorded[SubnetsFailed](b) != 1 {
		t.Errorf("recorded %d times, want once", recorded[SubnetsFailed](b))
	}
	var fill *Operation
	for _, op := range b.ops {
		if op.SubnetID != testSubnet {
			t.Errorf("operation %d is in %q, want the node's own subnet", op.ID, op.SubnetID)
		}
		if op.ENI != "" {
			fill = op
		}
	}
	if fill == nil {
		t.Fatal("nothing is asked for")
	}
	b.send(AssignDone{ID: fill.ID, CIDRs: secondary(1)})
	b.write(nil)
	if r := a.got(t); !r.Success {
		t.Errorf("ADD: %+v", r)
	}
	if attach, ok := lastOp(b, warmpool.PendingAttach); !ok || attach.SubnetID != testSubnet {
		t.Errorf("attach %+v, want one in the node's own subnet", attach)
	}
	tasks := count[SubnetsTask](b)
	b.pass(100 * time.Millisecond)
	if n := count[SubnetsTask](b) - tasks; n != 0 {
		t.Errorf("asked again %d times at once", n)
	}
}
