package keeper

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// TestCommit_FailureUndoesWhatCameLater: during the write of a DEL an ADD gets the same
// address. The write fails: if only the DEL were undone, two sandboxes would have one
// address.
func TestCommit_FailureUndoesWhatCameLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.Cooldown = 0
	b.book = ipam.New(ipam.Options{})
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-primary", Primary: true, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.MustParseAddr("10.0.0.4"), RouteTable: 254,
	}})
	b.give(1)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	d, next := del("a"), b.add("b", 0)
	b.send(d.Del)
	b.clock = b.clock.Add(time.Millisecond)
	b.send(next.Add)
	b.write(errors.New("disk full"))
	if d.got(t).Success || next.got(t).Success {
		t.Errorf("DEL %+v, ADD %+v", d.reply, next.reply)
	}
	if !b.holds(a.sandbox(0)) || b.holds(next.sandbox(0)) {
		t.Errorf("a holds %v, b holds %v", b.holds(a.sandbox(0)), b.holds(next.sandbox(0)))
	}
}

// TestCommit_OutageIsRecordedOnce: neither events nor retries come every second.
func TestCommit_OutageIsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	a := b.add("a", 0)
	b.send(a.Add)
	writes := 0
	for end := b.clock.Add(10 * time.Minute); b.clock.Before(end); b.pass(time.Second) {
		if len(b.disk) > 0 {
			writes++
			b.write(errors.New("disk full"))
		}
	}
	if n := recorded[CheckpointFailed](b); n != 1 || writes > 30 {
		t.Errorf("recorded %d times, tried %d times", n, writes)
	}
	next := b.add("b", 0)
	b.send(next.Add) // an ADD waits: retried at once
	b.write(nil)
	if !next.got(t).Success || recorded[CheckpointRecovered](b) != 1 {
		t.Errorf("%+v, recorded %d times", next.reply, recorded[CheckpointRecovered](b))
	}
}

// TestDropping_SandboxComesBack: while the rules of an ended sandbox are being removed, its
// ADD would lose what its plugin makes, and its DEL would free the address too early.
func TestDropping_SandboxComesBack(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		removed bool // the rules
		disk    error
	}{
		"rules removed":                   {removed: true},
		"rules not removed":               {},
		"rules removed, disk failing":     {removed: true, disk: errors.New("disk full")},
		"rules not removed, disk failing": {disk: errors.New("disk full")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.give(9)
			a := b.add("a", 0)
			b.send(a.Add)
			b.write(nil)
			for count[DropTask](b) == 0 {
				b.observe()
				b.seen(secondary(9), nil)
			}
			again := b.add("a", 0)
			b.send(again.Add)
			if r := again.got(t); r.Success || !r.Transient {
				t.Errorf("ADD: %+v", r)
			}
			d := del("a")
			b.send(d.Del)
			d.unanswered(t, "the DEL while the file has the address")
			task, _ := last[DropTask](b)
			done := task.Gone
			if !row.removed {
				done = nil
			}
			b.send(Dropped{Tried: task.Gone, Done: done})
			d.unanswered(t, "the DEL before the write")
			b.write(row.disk)
			if r := d.got(t); r.Success != (row.disk == nil) || r.Unknown || r.Success && r.Allocations[0].IPv4 != a.reply.Allocations[0].IPv4 {
				t.Errorf("DEL: %+v", r)
			}
			if held := !row.removed && row.disk != nil; b.holds(a.sandbox(0)) != held {
				t.Errorf("held: %v, want %v", !held, held)
			}
		})
	}
}

// TestDEL_RouteThatStays: the plugin died after the daemon's answer. The address is not
// reused while the kernel routes it to the pod.
func TestDEL_RouteThatStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.limits.IPv4PerENI, b.limits.ENIsByCard = 2, []int{1} // the node is full
	b.give(1)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	route := resync.PodRoute{Address: netip.MustParseAddr(a.got(t).Allocations[0].IPv4), HostLink: link("a")}
	d := del("a")
	b.send(d.Del)
	b.write(nil)
	for end := b.clock.Add(3 * b.policy.Cooldown); b.clock.Before(end); b.pass(time.Second) {
		if b.recon.observing {
			b.seen(secondary(1), []string{link("a")}, route)
		}
		if len(b.disk) > 0 {
			b.write(nil)
		}
		next := b.add("b", 0)
		b.send(next.Add)
		if next.reply == nil || next.reply.Success {
			t.Fatalf("%s was given again %v after the DEL, and is routed to its last pod", route.Address, b.clock.Sub(end.Add(-3*b.policy.Cooldown)))
		}
	}
}

// TestNotFound_IsNotForEver: EC2 did not find the ENI for a moment.
func TestNotFound_IsNotForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(5)
	b.Step(b.clock)
	gone := &Failure{NotFound: true, Err: errors.New("not found")}
	b.send(AssignDone{ID: b.only().ID, Err: gone})
	r := b.add("a", 0)
	b.send(r.Add)
	if r.got(t).Success {
		t.Fatal("an address of an ENI that EC2 does not know")
	}
	b.policy.WarmENI = 0
	for end := b.clock.Add(5 * time.Minute); b.clock.Before(end); b.pass(time.Second) {
		for id, op := range b.ops { // all other operations of the pool fail
			if op.ENI == "" {
				b.send(AttachDone{ID: id, Err: failed("ec2-error")})
			} else {
				b.send(AssignDone{ID: id, Err: failed("ec2-error")})
			}
		}
		if b.recon.observing {
			b.seen(secondary(5), nil)
		}
	}
	r = b.add("b", 0)
	b.send(r.Add)
	if len(b.disk) == 0 {
		t.Error("EC2 shows the ENI, and it is still out of use")
	}
}

// TestReconcile_MovedENI: one task tears it down and then sets it up.
func TestReconcile_MovedENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	b.settings.ManageUntagged, b.settings.Provisioning = true, false
	primary := netip.MustParseAddr("10.0.0.9")
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-moved", Device: 1, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"), PrimaryIP: primary, RouteTable: 2,
	}})
	f, e := attachedView(secondary(9))
	f = append(f, resync.Interface{ENI: "eni-moved", Device: 2, SubnetID: testSubnet, IPv4s: []netip.Addr{primary}})
	e = append(e, resync.ENI{ID: "eni-moved", Device: 2, Status: "in-use", SubnetID: testSubnet, InstanceID: "i-0123456789abcdef0",
		AttachmentID: "eni-attach-2", AttachmentStatus: resync.AttachmentAttached, PrimaryIP: primary})
	b.recon.needEC2, b.recon.askedEC2 = true, time.Time{}
	b.observe()
	b.send(Observed{AskedMetadata: true, Interfaces: f, AskedEC2: true, ENIs: e, Links: []string{"lo"}})
	task, ok := last[AdoptTask](b)
	if !ok || len(task.Before) != 1 || task.Attached.ENI.Device != 2 || count[TearDownTask](b) != 0 {
		t.Errorf("adopts %+v (%v), %d tear-downs of its own", task, ok, count[TearDownTask](b))
	}
}

// TestLateOperation_IsNotCountedOn: a hanging attach that EC2 has accepted does not block
// other attempts. One that EC2 has not accepted yet still waits within its limits, and
// another would queue behind it.
func TestLateOperation_IsNotCountedOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.limits.IPv4PerENI, b.limits.ENIsByCard, b.policy.WarmENI = 2, []int{8}, 0
	b.give(1)
	b.placed("a")
	b.send(b.add("b", time.Minute).Add)
	before := len(operations(b, warmpool.PendingAttach))
	b.pass(lateAfter)
	if n := len(operations(b, warmpool.PendingAttach)); n != before {
		t.Errorf("%d attaches beside those that EC2 has not taken, want %d", n, before)
	}
	for _, task := range operations(b, warmpool.PendingAttach) {
		b.send(AttachAccepted{task.ID, "eni-slow"})
	}
	b.pass(lateAfter)
	if len(operations(b, warmpool.PendingAttach)) <= before {
		t.Errorf("%d attaches, want more than %d", len(operations(b, warmpool.PendingAttach)), before)
	}
}

// TestSubnets_CountsFollow: counts follow assignments and releases, and an empty subnet is
// recorded.
func TestSubnets_CountsFollow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	free := func() int { return b.State(b.clock).Subnets[0].AvailableIPs }
	b.policy.WarmENI, b.policy.WarmIP, b.policy.MinIP = 0, 1, 1
	b.give(9)
	for len(operations(b, warmpool.PendingRelease)) == 0 {
		b.pass(10 * time.Second)
	}
	before := free()
	task, _ := lastOp(b, warmpool.PendingRelease)
	b.send(ReleaseDone{ID: task.ID, Gone: task.CIDRs})
	if got, want := free(), before+len(task.CIDRs); got != want {
		t.Errorf("%d free after the release, want %d", got, want)
	}
	b.describe(0)
	if all := b.State(b.clock).Backoffs; len(all) != 1 || all[0].Scope != "subnet" || all[0].ID != testSubnet || recorded[BackoffStarted](b) != 1 {
		t.Errorf("clocks %+v, recorded %d times", all, recorded[BackoffStarted](b))
	}
	b.describe(100)
	if all := b.State(b.clock).Backoffs; len(all) != 0 || recorded[BackoffEnded](b) != 1 {
		t.Errorf("clocks %+v, ended %d times", all, recorded[BackoffEnded](b))
	}
	reads := count[SubnetsTask](b)
	b.pass(subnetEvery)
	if count[SubnetsTask](b) != reads+1 {
		t.Error("the counts are never read again")
	}
}

// TestKeeper_ReadsSubnetsThatTheStartDidNot: their tags exclude ENIs, whether or not the
// pool wants one.
func TestKeeper_ReadsSubnetsThatTheStartDidNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI, b.policy.WarmIP, b.subnets = 0, 1, subnetCache{few: b.subnets.few}
	b.give(9)
	b.Step(b.clock)
	for _, want := range []int{1, 2} {
		if n := count[SubnetsTask](b); n != want {
			t.Fatalf("%d reads, want %d", n, want)
		}
		b.send(SubnetsRead{Err: failed(cause.EC2Throttled)})
		b.pass(subnetEvery)
	}
}

// TestRestore_DoubtfulAddresses: EC2 lists an address that the metadata does not show; the
// previous daemon may have released it as it died. It serves no pod until EC2 has been
// queried again.
func TestRestore_DoubtfulAddresses(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		b := newBench(t)
		b.policy.WarmENI = 0
		b.give(2)
		f, _ := attachedView(secondary(1))
		if _, err := b.Restore(b.clock, Start{Restart: restart, Interfaces: f}); err != nil {
			t.Fatal(err)
		}
		b.limits.ENIsByCard, b.limits.IPv4PerENI = []int{1}, 3
		one, two := b.add("a", 0), b.add("b", time.Minute)
		b.send(one.Add)
		b.write(nil)
		b.send(two.Add)
		if len(b.disk) == 0 != restart {
			t.Errorf("restart %v: given before EC2 was asked: %v", restart, len(b.disk) > 0)
		}
		if !restart {
			continue
		}
		b.observe()
		b.seen(secondary(2), []string{link("a")})
		b.write(nil)
		if !two.got(t).Success {
			t.Errorf("EC2 shows it, and it is not given: %+v", two.reply)
		}
	}
}

// TestFail_SlotOfAnENIOnItsWay: a node whose last slot belongs to an ENI that EC2 neither
// attaches nor detaches is not full, and may recover.
func TestFail_SlotOfAnENIOnItsWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.limits.IPv4PerENI, b.limits.ENIsByCard = 2, []int{2}
	b.give(1)
	b.placed("a")
	r := b.add("b", 10*time.Second)
	b.send(r.Add)
	eni := ipam.ENI{ID: "eni-stuck", Device: 1, SubnetID: testSubnet}
	b.send(AttachDone{ID: b.only().ID, ENI: eni, Attached: true, Err: failed("eni-link-missing")})
	b.pass(10 * time.Second)
	if got := r.got(t); got.Cause != "eni-link-missing" || !got.Transient {
		t.Errorf("%+v", got)
	}
}
