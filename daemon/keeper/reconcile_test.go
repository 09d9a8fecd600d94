package keeper

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// attachedView is the outside view of the bench's primary ENI.
func attachedView(addresses []netip.Prefix) ([]resync.Interface, []resync.ENI) {
	primary := netip.MustParseAddr("10.0.0.4")
	f := resync.Interface{ENI: "eni-primary", SubnetID: testSubnet, SubnetCIDR: netip.MustParsePrefix("10.0.0.0/20"), IPv4s: []netip.Addr{primary}}
	e := resync.ENI{
		ID: "eni-primary", Status: "in-use", SubnetID: testSubnet, InstanceID: "i-0123456789abcdef0",
		AttachmentID: "eni-attach-1", AttachmentStatus: resync.AttachmentAttached, PrimaryIP: primary,
	}
	for _, p := range addresses {
		f.IPv4s = append(f.IPv4s, p.Addr())
		e.SecondaryIPs = append(e.SecondaryIPs, p.Addr())
	}
	return []resync.Interface{f}, []resync.ENI{e}
}

// seen answers the current look: metadata and EC2 show the addresses, the kernel shows the
// links and the routes.
func (b *bench) seen(addresses []netip.Prefix, links []string, routes ...resync.PodRoute) {
	b.t.Helper()
	task, ok := last[ObserveTask](b)
	if !ok || !b.recon.observing {
		b.t.Fatal("no read was started")
	}
	v := Observed{AskedMetadata: task.Metadata, AskedEC2: task.EC2, Links: append(links, "lo"), Routes: routes}
	v.Interfaces, v.ENIs = attachedView(addresses)
	if !task.EC2 {
		v.ENIs = nil
	}
	b.send(v)
}

// observe moves the clock to the next observation.
func (b *bench) observe() {
	b.t.Helper()
	for range 100 {
		if b.recon.observing {
			return
		}
		b.pass(max(b.recon.due().Sub(b.clock), 0))
	}
	b.t.Fatal("no read was started")
}

func link(name string) string { return netnames.HostVeth("eni", "shop", name, 0) }

// TestReconcile_Quarantine: an address that EC2 no longer shows keeps its pod, is assigned
// to no other pod, and is used again once EC2 shows it again.
func TestReconcile_Quarantine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI = 0 // no operation is in flight on the ENI
	b.give(2)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	address := netip.MustParseAddr(a.got(t).Allocations[0].IPv4)
	route := resync.PodRoute{Address: address, HostLink: link("a")}
	lost := []netip.Prefix{secondary(2)[0]}
	if lost[0].Addr() == address {
		lost = secondary(2)[1:]
	}
	for recorded[Quarantined](b) == 0 {
		b.observe()
		b.seen(lost, []string{link("a")}, route)
		if b.clock.Sub(b.started) > 10*time.Minute {
			t.Fatal("not quarantined")
		}
	}
	have, ok := b.book.Lookup(a.sandbox(0))
	if !ok || have.Address != address {
		t.Fatalf("allocation is now %+v", have)
	}
	for range 30 { // longer than it takes
		b.observe()
		b.seen(lost, []string{link("a")}, route)
	}
	if !b.holds(a.sandbox(0)) {
		t.Fatal("a living pod lost its allocation")
	}
	b.observe()
	b.seen(secondary(2), []string{link("a")}, route)
	for range 3 {
		b.observe()
		b.seen(secondary(2), []string{link("a")}, route)
	}
	if recorded[Unquarantined](b) == 0 {
		t.Error("EC2 shows the address again, and it is still out of use")
	}
}

// TestReconcile_MissedDEL: the pod is gone, and no DEL came. Two looks some time apart end
// the allocation, but only once its rules are gone.
func TestReconcile_MissedDEL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	b.observe()
	b.seen(secondary(9), nil)
	if count[DropTask](b) != 0 {
		t.Fatal("ended before its link can have been there")
	}
	for count[DropTask](b) == 0 {
		b.observe()
		b.seen(secondary(9), nil)
		if b.clock.Sub(b.started) > 3*time.Minute {
			t.Fatal("never ended")
		}
	}
	if b.clock.Sub(b.started) < resync.LinkDelay {
		t.Errorf("ended after %v", b.clock.Sub(b.started))
	}
	if !b.holds(a.sandbox(0)) {
		t.Fatal("the address is free before its rules are gone")
	}
	task, _ := last[DropTask](b)
	b.send(Dropped{Tried: task.Gone})
	if !b.holds(a.sandbox(0)) {
		t.Fatal("the address is free although its rules could not be removed")
	}
	b.observe()
	b.seen(secondary(9), nil)
	if count[DropTask](b) != 2 {
		t.Fatal("not tried again")
	}
	b.send(Dropped{Tried: task.Gone, Done: task.Gone})
	b.write(nil)
	if b.holds(a.sandbox(0)) || len(b.ledger.files[0].rows) != 0 || recorded[MissedDEL](b) != 1 {
		t.Errorf("held %v, in the file %d, recorded %d times", b.holds(a.sandbox(0)), len(b.ledger.files[0].rows), recorded[MissedDEL](b))
	}
}

// TestReconcile_LivingPodStays: a look that sees the pod's link ends nothing.
func TestReconcile_LivingPodStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	for range 10 {
		b.observe()
		b.seen(secondary(9), []string{link("a")})
	}
	if count[DropTask](b) != 0 || !b.holds(a.sandbox(0)) {
		t.Error("a living pod lost its allocation")
	}
}

// TestReconcile_RecoveredAllocationOutlivesADEL: the sandbox of an allocation rebuilt from
// the kernel is unknown. A late DEL of an older sandbox of the same pod must not take the
// living one's address. Its plugin must be told, or it would remove the living one's rules.
func TestReconcile_RecoveredAllocationOutlivesADEL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	live := resync.Recovered(link("a"))
	b.apply(b.clock, ipam.Restore{Sandbox: live, Address: netip.MustParseAddr("10.0.1.1")})
	have, _ := b.book.Lookup(live)
	b.ledger.put(have)
	d := del("a")
	b.send(d.Del)
	if r := d.got(t); !r.Unknown || len(r.Allocations) != 1 || r.Allocations[0].IPv4 != "10.0.1.1" {
		t.Errorf("DEL: %+v", r)
	}
	b.observe()
	b.seen(secondary(9), []string{link("a")}, resync.PodRoute{Address: have.Address, HostLink: link("a")})
	if !b.holds(live) {
		t.Fatal("the allocation ended while its link lives")
	}
	for count[DropTask](b) == 0 {
		b.observe()
		b.seen(secondary(9), nil)
		if b.clock.Sub(b.started) > 5*time.Minute {
			t.Fatal("the allocation outlived its link")
		}
	}
	task, _ := last[DropTask](b)
	b.send(Dropped{Tried: task.Gone, Done: task.Gone})
	b.write(nil)
	if b.holds(live) || len(b.ledger.files[0].rows) != 0 {
		t.Error("the allocation outlived its link")
	}
}

// TestReconcile_FailedViewsChangeNothing: what cannot be read is unknown.
func TestReconcile_FailedViewsChangeNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	before, compared := b.book.Snapshot(), b.State(b.clock).Reconciled
	broken := errors.New("broken")
	for range 20 {
		b.observe()
		task, _ := last[ObserveTask](b)
		b.send(Observed{AskedMetadata: true, InterfacesErr: broken, AskedEC2: task.EC2, ENIsErr: broken, KernelErr: broken})
	}
	if after := b.book.Snapshot(); len(after.ENIs) != len(before.ENIs) || len(after.ENIs[0].CIDRs) != 9 || !b.holds(a.sandbox(0)) {
		t.Errorf("book changed: %+v", after)
	}
	if recorded[ReconcileFailed](b) == 0 {
		t.Error("not recorded")
	}
	if got := b.State(b.clock).Reconciled; !got.Equal(compared) {
		t.Errorf("compared at %v, and before the failures at %v", got, compared)
	}
	b.observe()
	f, e := attachedView(secondary(9))
	b.send(Observed{AskedMetadata: true, Interfaces: f, AskedEC2: true, ENIs: e, Links: []string{"lo"}})
	if got := b.State(b.clock).Reconciled; !got.Equal(b.clock) {
		t.Errorf("compared at %v, now %v", got, b.clock)
	}
}

// TestReconcile_FoundENI sets up an ENI that others attached, reserves its slot meanwhile,
// and then uses its addresses.
func TestReconcile_FoundENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI = 0 // no operation is in flight on the ENI
	b.give(9)
	f, e := attachedView(secondary(9))
	f = append(f, resync.Interface{ENI: "eni-found", Device: 1, SubnetID: testSubnet, SubnetCIDR: netip.MustParsePrefix("10.0.0.0/20"),
		IPv4s: []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.3.1")}})
	e = append(e, resync.ENI{ID: "eni-found", Device: 1, Status: "in-use", SubnetID: testSubnet, InstanceID: "i-0123456789abcdef0",
		AttachmentID: "eni-attach-2", AttachmentStatus: resync.AttachmentAttached, PrimaryIP: netip.MustParseAddr("10.0.0.9"),
		SecondaryIPs: []netip.Addr{netip.MustParseAddr("10.0.3.1")}, Tags: map[string]string{resync.TagInstanceID: "i-0123456789abcdef0"}})
	for count[AdoptTask](b) == 0 {
		b.observe()
		task, _ := last[ObserveTask](b)
		v := Observed{AskedMetadata: true, Interfaces: f, AskedEC2: task.EC2, Links: []string{"lo"}}
		if task.EC2 {
			v.ENIs = e
		}
		b.send(v)
		if b.clock.Sub(b.started) > 5*time.Minute {
			t.Fatal("not found")
		}
	}
	if enis, devices := b.recon.slots(1); enis[0] != 1 || devices[0][0] != 1 {
		t.Errorf("slots of others: %v %v", enis, devices)
	}
	task, _ := last[AdoptTask](b)
	b.send(Adopted{task.Attached})
	if enis, _ := b.recon.slots(1); enis[0] != 0 {
		t.Errorf("still counted as another's: %v", enis)
	}
	if got, ok := b.eni("eni-found"); !ok || len(got.CIDRs) != 1 {
		t.Errorf("in the book: %+v", got)
	}
}

// TestRestore_LateENI reserves the slot of an ENI that could not be set up at start, until
// it can.
func TestRestore_LateENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	late := resync.Attached{
		ENI:   ipam.ENI{ID: "eni-late", Device: 1, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.5"), RouteTable: 2},
		CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.3.1/32")},
	}
	if _, err := b.Restore(b.clock, Start{Late: []resync.Attached{late}}); err != nil {
		t.Fatal(err)
	}
	pod := ipam.Sandbox{Network: "aws-cni", ContainerID: "old", IfName: "eth0"}
	b.apply(b.clock, ipam.Restore{Sandbox: pod, Address: netip.MustParseAddr("10.0.3.1")})
	r := b.add("a", 0)
	b.send(r.Add)
	if op := b.only(); op.Device != 2 {
		t.Errorf("new ENI at device %d, where the late one is at 1", op.Device)
	}
	b.send(Adopted{late})
	if a, _ := b.book.Lookup(pod); a.ENI != "eni-late" {
		t.Errorf("allocation of a pod on it: %+v", a)
	}
}

// TestSweep: sweeps start within the jitter after a start, run one at a time, and repeat
// after an hour.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	begin := b.clock
	b.recon = newReconciler(begin, middle, true)
	for count[SweepTask](b) == 0 {
		b.pass(time.Second)
		if b.clock.Sub(begin) > resync.SweepJitter {
			t.Fatal("no sweep")
		}
	}
	// An ENI in the book that an earlier daemon created and that others have just detached.
	task, _ := last[SweepTask](b)
	task.In.Now = b.clock
	detached := resync.ENI{
		ID: "eni-primary", Status: resync.StatusAvailable, Description: resync.DescriptionPrefix + "x",
		Tags: map[string]string{resync.TagInstanceID: b.settings.InstanceID, resync.TagCreatedAt: begin.Add(-time.Hour).UTC().Format(time.RFC3339)},
	}
	stranger := detached
	stranger.ID = "eni-leaked"
	verdicts := resync.Leaked([]resync.ENI{detached, stranger}, task.In)
	if verdicts[0].Action != resync.LeakSkip || verdicts[1].Action != resync.LeakDelete {
		t.Errorf("an ENI of the book, and another one: %+v", verdicts)
	}
	b.pass(2 * time.Hour)
	if count[SweepTask](b) != 1 {
		t.Fatal("two sweeps at once")
	}
	b.send(Swept{Err: failed("ec2-throttled")})
	ended := b.clock
	for count[SweepTask](b) == 1 {
		b.pass(time.Second)
	}
	if again := b.clock.Sub(ended); again < time.Hour || again > time.Hour+resync.SweepJitter {
		t.Errorf("the next sweep comes %v after the end of the last", again)
	}
	if recorded[SweepFailed](b) != 1 {
		t.Error("not recorded of the failed sweep")
	}
}

// TestReleaseDone_PartlyGone: addresses that EC2 released leave the book even if the call
// failed; the rest is used again.
func TestReleaseDone_PartlyGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmIP, b.policy.MinIP = 1, 0
	b.give(9)
	for len(operations(b, warmpool.PendingRelease)) == 0 {
		b.pass(10 * time.Second)
	}
	task, _ := lastOp(b, warmpool.PendingRelease)
	if len(task.CIDRs) < 2 {
		t.Fatalf("gives back %v", task.CIDRs)
	}
	b.send(ReleaseDone{ID: task.ID, Gone: task.CIDRs[:1], Err: failed("ec2-error")})
	e, _ := b.eni("eni-primary")
	for _, c := range e.CIDRs {
		if c.Prefix == task.CIDRs[0] {
			t.Errorf("%s is EC2's and still in the book", c.Prefix)
		}
		if c.Held {
			t.Errorf("%s is still held", c.Prefix)
		}
	}
	if len(e.CIDRs) != 8 {
		t.Errorf("%d addresses left, want 8", len(e.CIDRs))
	}
}

// TestReconcile_ConfirmsSoon: EC2 is asked about missing objects as soon as its answer is
// reliable, not at the next periodic look.
func TestReconcile_ConfirmsSoon(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI = 0
	b.give(2)
	kept := secondary(1)
	for recorded[Quarantined](b) == 0 {
		b.observe()
		b.seen(kept, nil)
	}
	since := b.clock
	for len(b.book.Snapshot().ENIs[0].CIDRs) == 2 {
		b.observe()
		b.seen(kept, nil)
		if took := b.clock.Sub(since); took > resync.ConfirmAfter+time.Second {
			t.Fatalf("an address that is gone is kept in doubt for %v", took)
		}
	}
	if took := b.clock.Sub(since); took < resync.ConfirmAfter {
		t.Errorf("removed after %v", took)
	}
}
