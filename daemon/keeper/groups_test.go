package keeper

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// shownGroups answers a look: EC2 shows the primary ENI and a second one with groups.
func (b *bench) shownGroups(second ...string) {
	b.t.Helper()
	for range 100 {
		b.observe()
		v := Observed{AskedMetadata: true, AskedEC2: b.recon.withEC2, Links: []string{"lo"}}
		v.Interfaces, v.ENIs = attachedView(nil)
		address := netip.MustParseAddr("10.0.0.9")
		v.Interfaces = append(v.Interfaces, resync.Interface{
			ENI: "eni-second", Device: 1, SubnetID: testSubnet, SubnetCIDR: netip.MustParsePrefix("10.0.0.0/20"), IPv4s: []netip.Addr{address},
		})
		v.ENIs = append(v.ENIs, resync.ENI{
			ID: "eni-second", Status: "in-use", SubnetID: testSubnet, InstanceID: "i-0123456789abcdef0", Device: 1,
			AttachmentID: "eni-attach-2", AttachmentStatus: resync.AttachmentAttached, PrimaryIP: address, SecurityGroups: second,
			DeleteOnTermination: true, Tags: map[string]string{resync.TagInstanceID: "i-0123456789abcdef0"},
		})
		v.ENIs[0].SecurityGroups = []string{"sg-of-the-primary-alone"}
		if v.AskedEC2 {
			b.send(v)
			return
		}
		v.ENIs = nil
		b.recon.needEC2 = true
		b.send(v)
	}
	b.t.Fatal("EC2 is never asked")
}

// withSecond is a bench with a second ENI and no obstacles.
func withSecond(t *testing.T) *bench {
	b := newBench(t)
	b.policy.WarmENI = 0
	b.give(2)
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-second", Device: 1, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.MustParseAddr("10.0.0.9"), RouteTable: 2, AttachedAt: b.clock,
	}})
	return b
}

// TestGroups: an ENI is updated if EC2 shows other groups on it than the metadata shows on
// the primary ENI, which is never updated; a start alone updates nothing.
func TestGroups(t *testing.T) {
	t.Parallel()
	b := withSecond(t)
	b.send(GroupsRead{[]string{"sg-1", "sg-2"}})
	b.shownGroups("sg-2", "sg-1")
	if n := count[GroupsTask](b); n != 0 {
		t.Fatalf("%d writes of what is there already", n)
	}
	b.send(GroupsRead{[]string{"sg-3"}})
	task, ok := last[GroupsTask](b)
	if !ok || !slices.Equal(task.ENIs, []ipam.ENIID{"eni-second"}) || !slices.Equal(task.Groups, []string{"sg-3"}) {
		t.Fatalf("after the primary's groups changed: %+v", task)
	}
	b.send(GroupsDone{ENIs: task.ENIs, Groups: task.Groups})
	b.pass(time.Second)
	b.shownGroups("sg-1", "sg-2") // EC2's list predates the write
	if n := count[GroupsTask](b); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	b.pass(2 * writeSettle)
	b.shownGroups("sg-1") // someone changed them by hand
	if n := count[GroupsTask](b); n != 2 {
		t.Errorf("%d writes after a change by hand, want 2", n)
	}
}

// TestGroups_FailedWriteIsRepeated after growing pauses: upstream writes again only when the
// groups change again.
func TestGroups_FailedWriteIsRepeated(t *testing.T) {
	t.Parallel()
	b := withSecond(t)
	b.send(GroupsRead{[]string{"sg-3"}})
	b.shownGroups("sg-1")
	var pauses []time.Duration
	for range 4 {
		failedAt, before := b.clock, count[GroupsTask](b)
		b.send(GroupsDone{Groups: []string{"sg-3"}, Failed: "eni-second", Err: failed(cause.EC2Unauthorized)})
		for count[GroupsTask](b) == before {
			if b.clock.Sub(failedAt) > 2*refusedMost {
				t.Fatal("not tried again")
			}
			b.pass(100 * time.Millisecond)
		}
		pauses = append(pauses, b.clock.Sub(failedAt))
	}
	if !slices.IsSorted(pauses) || pauses[3] < 2*pauses[0] {
		t.Errorf("pauses %v, which do not grow", pauses)
	}
	b.send(GroupsDone{ENIs: []ipam.ENIID{"eni-second"}, Groups: []string{"sg-3"}})
	n := count[GroupsTask](b)
	b.pass(refusedMost)
	if count[GroupsTask](b) != n {
		t.Error("written again after it worked")
	}
}

// TestGroups_InTheWay: the daemon does not write where it must not.
func TestGroups_InTheWay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bench){
		"nothing":                   func(*bench) {},
		"custom networking":         func(b *bench) { b.settings.Subnets.Custom = true },
		"provisioning is off":       func(b *bench) { b.settings.Provisioning = false },
		"the node ends":             func(b *bench) { b.terminating = true },
		"the metadata have no word": func(b *bench) { b.groups = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withSecond(t)
			b.shownGroups("sg-1")
			b.groups = []string{"sg-3"}
			change(b)
			b.pass(0)
			want := 0
			if name == "nothing" {
				want = 1
			}
			if n := count[GroupsTask](b); n != want {
				t.Errorf("%d writes, want %d", n, want)
			}
		})
	}
}
