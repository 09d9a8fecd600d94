package keeper

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/resync"
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

// TestSubnets_OwnNotListed: a list without the node's own subnet, as in a shared VPC, is no reason
// not to grow there.
func TestSubnets_OwnNotListed(t *testing.T) {
	t.Parallel()
	tagged := func(free int) resync.Subnet {
		return resync.Subnet{ID: "subnet-tagged", CIDR: netip.MustParsePrefix("10.0.16.0/20"), AvailableIPs: free, Tags: map[string]string{resync.TagSubnetRole: "1"}}
	}
	for _, row := range []struct {
		name   string
		listed []resync.Subnet
		want   string
	}{
		{"an empty list", nil, testSubnet},
		{"others without a tag", []resync.Subnet{{ID: "subnet-other", AvailableIPs: 900}}, testSubnet},
		{"others excluded", []resync.Subnet{{ID: "subnet-other", AvailableIPs: 900, Tags: map[string]string{resync.TagSubnetRole: "0"}}}, testSubnet},
		{"another for pods", []resync.Subnet{tagged(900)}, "subnet-tagged"},
		{"another for pods, full", []resync.Subnet{tagged(0)}, testSubnet},
		{"its own, excluded", []resync.Subnet{{ID: testSubnet, AvailableIPs: 900, Tags: map[string]string{resync.TagSubnetRole: "0"}}}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.give(9)
			b.send(SubnetsRead{Subnets: row.listed})
			b.pass(time.Second)
			b.begun = nil
			b.send(b.add("a", 10*time.Second).Add) // the next ENI is wanted
			attach, _ := lastOp(b, warmpool.PendingAttach)
			if attach.SubnetID != row.want {
				t.Errorf("an ENI in %q, want %q", attach.SubnetID, row.want)
			}
			if row.want != testSubnet {
				return
			}
			if attach.subnet != netip.MustParsePrefix("10.0.0.0/20") {
				t.Errorf("its block is %v, want that of the primary ENI's subnet", attach.subnet)
			}
			if code, text, blocked := b.Blocked(b.clock, false); blocked {
				t.Errorf("blocked: %s, %s", code, text)
			}
			st := b.State(b.clock)
			if own := st.Subnets[len(st.Subnets)-1]; own.ID != testSubnet || own.AvailableIPs != resync.Unknown || own.CIDR != attach.subnet || len(st.Backoffs) > 0 {
				t.Errorf("subnets %+v, back-offs %+v", st.Subnets, st.Backoffs)
			}
		})
	}
}

// TestSubnets_ENIConfigNotListed: nor is it a reason not to grow in the subnet of an ENIConfig. A
// list with the node's own subnet shows all of the zone: what it lacks is in another one.
func TestSubnets_ENIConfigNotListed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		listed []resync.Subnet
		want   string
	}{
		{"an empty list", nil, customSubnet},
		{"others, one tagged", []resync.Subnet{{ID: "subnet-tagged", AvailableIPs: 900, Tags: map[string]string{resync.TagSubnetRole: "1"}}}, customSubnet},
		{"listed without the node's own", []resync.Subnet{{ID: customSubnet, AvailableIPs: 900}}, customSubnet},
		{"the node's own", []resync.Subnet{{ID: testSubnet, AvailableIPs: 900}}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := customBench(t)
			b.send(SubnetsRead{Subnets: row.listed})
			b.send(eniConfig(customSubnet))
			b.send(SubnetsRead{Subnets: row.listed})
			a := b.add("a", time.Minute)
			b.send(a.Add)
			attach, _ := lastOp(b, warmpool.PendingAttach)
			if attach.SubnetID != row.want {
				t.Errorf("an ENI in %q, want %q", attach.SubnetID, row.want)
			}
			if row.want == "" {
				if r := a.got(t); r.Cause != string(cause.ENIConfigMissing) {
					t.Errorf("ADD: %+v", r)
				}
				return
			}
			if attach.subnet.IsValid() {
				t.Errorf("its block is %v, which is another subnet's", attach.subnet)
			}
			if st := b.State(b.clock); len(st.Subnets) != 1 {
				t.Errorf("subnets %+v, want one", st.Subnets)
			}
			a.unanswered(t, "while an ENI is made")
		})
	}
}
