package keeper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

func TestKeeper_AnswersAfterTheWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	first, second := b.add("a", 0), b.add("b", 0)
	b.send(first.Add)
	b.send(second.Add)
	first.unanswered(t, "ADD before its write")
	b.write(nil)
	if r := first.got(t); !r.Success {
		t.Errorf("a: %+v", r)
	}
	second.unanswered(t, "ADD that the write does not hold")
	img := b.write(nil)
	if r := second.got(t); !r.Success {
		t.Errorf("b: %+v", r)
	}
	if entries, err := checkpoint.Decode(img.Files[0].Data); err != nil || len(entries) != 2 {
		t.Errorf("file holds %v, %v; want both", entries, err)
	}
}

// TestKeeper_RepeatedADDOfARevertedOne: the write of an ADD fails while its repetition waits
// for the next write. Answering that with success would give an address that the book has
// taken back.
func TestKeeper_RepeatedADDOfARevertedOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	first, again := b.add("a", 0), b.add("a", 0)
	b.send(first.Add)
	b.send(b.add("other", 0).Add) // a later generation
	b.send(again.Add)
	b.write(errors.New("disk full"))
	if r := first.got(t); r.Success || r.Cause != string(cause.CheckpointUnwritable) {
		t.Errorf("a: %+v", r)
	}
	b.pass(commitRetry)
	b.write(nil)
	if r := again.got(t); r.Success {
		t.Errorf("repeated ADD got %v, which no sandbox holds", r.Allocations)
	}
}

// TestKeeper_DELOvertakesTheWriteOfItsADD: the ADD's runtime has given up and deletes.
func TestKeeper_DELOvertakesTheWriteOfItsADD(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		err  error
	}{{"written", nil}, {"not written", errors.New("disk full")}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.give(9)
			a, d := b.add("a", 0), del("a")
			b.send(a.Add)
			b.send(d.Del)
			b.write(row.err)
			if r := a.got(t); r.Success {
				t.Errorf("ADD of a deleted sandbox: %+v", r)
			}
			b.pass(commitRetry)
			b.write(nil)
			// If the ADD fails, so does the later DEL: both are retried.
			if r := d.got(t); r.Success != (row.err == nil) {
				t.Errorf("DEL: %+v", r)
			}
			if len(b.ledger.files[0].rows) != 0 {
				t.Errorf("file still holds %s", b.ledger.files[0].rows)
			}
		})
	}
}

// TestKeeper_HangingDisk: waiting requests fail, and the daemon recovers with the disk.
func TestKeeper_HangingDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	a, d := b.add("a", 0), del("a")
	b.send(a.Add)
	if wake := b.NextWake(b.clock).Sub(b.clock); wake > commitLimit {
		t.Errorf("sleeps %v while a write is under way, want %v at most", wake, commitLimit)
	}
	b.pass(commitLimit)
	if r := a.got(t); r.Success || r.Cause != string(cause.CheckpointUnwritable) {
		t.Errorf("ADD during a hang: %+v", r)
	}
	late := b.add("late", 0)
	b.send(late.Add)
	if r := late.got(t); r.Success {
		t.Errorf("a later ADD: %+v", r)
	}
	b.send(d.Del)
	if r := d.got(t); !r.Unknown {
		t.Errorf("DEL of a sandbox whose ADD failed: %+v", r)
	}
	b.write(nil) // of the reverted ADD
	if img := b.write(nil); strings.Contains(string(img.Files[0].Data), `"10.0.1.`) {
		t.Errorf("the file after the hang: %s", img.Files[0].Data)
	}
	next := b.add("next", 0)
	b.send(next.Add)
	b.write(nil)
	if r := next.got(t); !r.Success {
		t.Errorf("ADD after the hang: %+v", r)
	}
}

// TestKeeper_FirstComeFirstServed: freed addresses go to the oldest ADD, and a sandbox that
// was deleted meanwhile gets nothing.
func TestKeeper_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var adds []*asked
	for _, name := range []string{"a", "b", "c"} {
		r := b.add(name, 10*time.Second)
		b.send(r.Add)
		adds = append(adds, r)
	}
	d := del("a")
	b.send(d.Del)
	if r := adds[0].got(t); r.Success || !d.got(t).Unknown {
		t.Errorf("deleted while waiting: %+v", r)
	}
	var fill *Operation
	for _, op := range b.ops {
		if op.ENI != "" {
			fill = op
		}
	}
	b.send(AssignDone{ID: fill.ID, CIDRs: secondary(1)})
	b.write(nil)
	if r := adds[1].got(t); !r.Success {
		t.Errorf("b: %+v", r)
	}
	adds[2].unanswered(t, "c")
}

// TestKeeper_ADDThatFindsNothing checks when it is answered and with which cause.
func TestKeeper_ADDThatFindsNothing(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Second
	rows := []struct {
		name   string
		before func(b *bench)
		wait   time.Duration
		during func(b *bench)
		after  time.Duration // when the answer arrives
		cause  cause.Code
		says   string
	}{
		{name: "no wait", wait: 0, cause: cause.PoolDry},
		{name: "no ENI may be attached", before: func(b *bench) { b.policy.MaxENI = 1; b.limits.IPv4PerENI = 1 }, wait: wait, cause: cause.PoolFull, says: "MAX_ENI is 1"},
		{name: "every subnet excluded", before: func(b *bench) {
			b.limits.IPv4PerENI = 10
			b.subnets.all[0].Tags = map[string]string{resync.TagSubnetRole: "0"}
			b.give(9)
			b.policy.WarmENI = 0
			for i := range 9 {
				b.send(b.add(fmt.Sprint("p", i), 0).Add)
			}
		}, wait: wait, cause: cause.NoUsableSubnet},
		{name: "shutting down", before: func(b *bench) { b.send(Terminate{}) }, wait: wait, cause: cause.DaemonTerminating},
		{name: "EC2 does not answer", wait: wait, after: wait, cause: cause.PoolDry, says: "EC2 has not finished the assign on eni-primary that began 10s ago"},
		{name: "link does not appear", before: func(b *bench) { b.limits.IPv4PerENI = 2; b.give(1); b.placed("p") }, wait: wait,
			during: func(b *bench) {
				for _, op := range b.ops {
					b.send(AttachAccepted{op.ID, "eni-new"})
				}
			},
			after: wait, cause: cause.ENILinkMissing, says: "the link of eni-new has not appeared"},
		{name: "unauthorized", wait: wait, during: func(b *bench) {
			for len(b.ops) > 0 {
				for _, op := range b.ops {
					if op.ENI != "" {
						b.Handle(b.clock, AssignDone{ID: op.ID, Err: failed(cause.EC2Unauthorized)})
					} else {
						b.Handle(b.clock, AttachDone{ID: op.ID, Err: failed(cause.EC2Unauthorized)})
					}
				}
				b.Step(b.clock)
			}
		}, cause: cause.EC2Unauthorized},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if row.before != nil {
				row.before(b)
			}
			r := b.add("new", row.wait)
			b.send(r.Add)
			if row.during != nil {
				row.during(b)
			}
			if row.after > 0 {
				b.pass(row.after - time.Millisecond)
				r.unanswered(t, "ADD before its time")
				b.pass(time.Millisecond)
			}
			reply := r.got(t)
			if reply.Success || reply.Cause != string(row.cause) || !strings.Contains(reply.Detail, row.says) {
				t.Errorf("%+v\nwant cause %s, detail with %q", reply, row.cause, row.says)
			}
		})
	}
}

// TestKeeper_SubnetThatWasFull: a count of zero free addresses expires.
func TestKeeper_SubnetThatWasFull(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(0)
	b.limits.IPv4PerENI = 2
	b.give(1)
	b.placed("a")
	r := b.add("b", time.Hour)
	b.send(r.Add)
	reads := 0
	for range 10 * time.Minute / time.Second {
		b.pass(time.Second)
		if b.subnets.refreshing && reads < 15 {
			reads++
			b.describe(0)
		}
	}
	if reads < 5 || reads > 12 {
		t.Errorf("asked %d times in ten minutes whether the subnet is still full, want a back-off up to 2 min", reads)
	}
	for range ExhaustedMax / time.Second {
		b.pass(time.Second)
	}
	if !b.subnets.refreshing {
		t.Fatal("no read of whether the subnet is still full")
	}
	b.describe(100)
	b.Step(b.clock)
	if len(b.ops) == 0 {
		t.Error("the subnet has addresses again, and no ENI is made")
	}
}

// TestKeeper_FullENI: EC2 reports an ENI as full although the table does not. It is not
// tried again at once.
func TestKeeper_FullENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Step(b.clock)
	op := b.only()
	b.send(AssignDone{ID: op.ID, CIDRs: secondary(4), All: true, Full: true})
	for _, again := range b.ops {
		if again.ENI == op.ENI {
			t.Fatalf("asked again at once: %+v", again)
		}
	}
	if until := b.backoff.eni["eni-primary"].Until; !until.After(b.clock) {
		t.Error("no back-off")
	}
}

// TestKeeper_VanishedENI: no addresses of an ENI unknown to EC2 are assigned.
func TestKeeper_VanishedENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(5)
	b.Step(b.clock)
	b.send(AssignDone{ID: b.only().ID, Err: &Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("gone")}})
	r := b.add("a", 0)
	b.send(r.Add)
	if reply := r.got(t); reply.Success {
		t.Errorf("got %v of an ENI that does not exist", reply.Allocations)
	}
}

// TestKeeper_FragmentedSubnetRecovers: a subnet's back-off ends with the first prefix it
// provides, so the next shortage starts with a short one.
func TestKeeper_FragmentedSubnetRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.PrefixDelegation, b.policy.WarmPrefix = true, 1
	b.Step(b.clock)
	b.send(AssignDone{ID: b.only().ID, Err: failed(cause.SubnetFragmented)})
	if b.backoff.subnetPrefixes[testSubnet].Until.IsZero() {
		t.Fatal("no back-off of the subnet")
	}
	b.describe(1000)
	b.pass(ExhaustedFirst)
	b.send(AssignDone{ID: b.only().ID, CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/28")}})
	if c := b.backoff.subnetPrefixes[testSubnet]; *c != (BackoffTimer{}) {
		t.Errorf("clock after a success: %+v", c)
	}
}

// TestKeeper_WaitsForTheNode: the pool does not grow ahead of pods until it is known whether
// the node is cordoned, or for a while; a waiting pod is served at once.
func TestKeeper_WaitsForTheNode(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		wait time.Duration
		send func(b *bench)
		ops  bool
	}{
		{"no NodeRead will come", 0, func(*bench) {}, true},
		{"not said yet", 5 * time.Second, func(*bench) {}, false},
		{"schedulable", 5 * time.Second, func(b *bench) { b.send(NodeRead{}) }, true},
		{"cordoned", 5 * time.Second, func(b *bench) { b.send(NodeRead{Unschedulable: true}) }, false},
		{"not said yet, cordoned nodes are managed", 5 * time.Second, func(*bench) {}, false},
		{"cordoned nodes are managed", 5 * time.Second, func(b *bench) { b.send(NodeRead{Unschedulable: true}) }, true},
		{"silent for too long", 5 * time.Second, func(b *bench) { b.pass(b.NextWake(b.clock).Sub(b.clock)); b.pass(5 * time.Second) }, true},
		{"a pod waits", 5 * time.Second, func(b *bench) { b.send(b.add("a", time.Minute).Add) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.settings.NodeWait = row.wait
			b.policy.ManageUnschedulable = strings.HasSuffix(row.name, "managed")
			b.Step(b.clock)
			row.send(b)
			if (len(b.ops) > 0) != row.ops {
				t.Errorf("operations: %d", len(b.ops))
			}
		})
	}
}

// TestKeeper_Targets: the pool follows the targets that come with the Node, and those of the
// settings again when they are gone. A lower limit on ENIs keeps those that there are.
func TestKeeper_Targets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmIP = 2
	own := TargetsOf(b.policy)
	assigned := func(want int) {
		t.Helper()
		if want == 0 {
			if len(b.ops) != 0 {
				t.Fatalf("%d operations, want none", len(b.ops))
			}
			return
		}
		op := b.only()
		if op.Kind != warmpool.PendingAssign || op.IPs != want {
			t.Fatalf("operation %s of %d addresses, want %d assigned", ActionName(op.Kind), op.IPs, want)
		}
		free := b.book.Snapshot().Totals(0, ipam.SecondaryIPs, b.clock, time.Minute).Total
		b.send(AssignDone{ID: op.ID, CIDRs: secondary(free + want)[free:]})
	}
	b.send(NodeRead{Targets: new(own)})
	assigned(2)
	more := own
	more.WarmIP = 6
	b.send(NodeRead{Targets: &more})
	assigned(4)
	b.send(NodeRead{}) // labels are not read
	b.send(NodeRead{Targets: &more})
	assigned(0)
	if n := len(changes(b)); n != 1 {
		t.Fatalf("%d changes of the targets, want 1", n)
	}
	b.send(NodeRead{Targets: &own})
	if b.pass(time.Minute); b.only().Kind != warmpool.PendingRelease || len(b.only().CIDRs) != 4 {
		t.Fatalf("%s of %v, want 4 addresses released", ActionName(b.only().Kind), b.only().CIDRs)
	}
	if c := changes(b)[1]; c.Was != more || c.Is != own {
		t.Errorf("change of the targets: %+v", c)
	}
}

// TestKeeper_LowerMaxENI: a limit on ENIs that is lower than their number stops growth and
// detaches nothing; without it the pool grows again.
func TestKeeper_LowerMaxENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-2", Device: 1, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.MustParseAddr("10.0.0.5"), RouteTable: 2,
	}})
	targets := TargetsOf(b.policy)
	targets.WarmIP, targets.MaxENI = 20, 1
	b.send(NodeRead{Targets: &targets})
	for range 3 {
		b.pass(2 * time.Minute)
		for _, op := range b.ops {
			if op.Kind == warmpool.PendingAttach || op.Kind == warmpool.PendingDetach {
				t.Fatalf("%s with a limit of 1", ActionName(op.Kind))
			}
		}
	}
	targets.MaxENI = 0
	b.describe(1000)
	b.send(NodeRead{Targets: &targets})
	for _, op := range b.ops {
		if op.Kind == warmpool.PendingAttach {
			return
		}
	}
	t.Error("no ENI without the limit")
}

// changes returns the changes of the targets so far.
func changes(b *bench) (out []TargetsChanged) {
	for _, e := range b.events {
		if c, ok := e.(TargetsChanged); ok {
			out = append(out, c)
		}
	}
	return out
}

// TestKeeper_LateDELOfTheSamePod: a recreated pod may get its predecessor's address, whose
// DEL comes late. The kernel's links and routes are the same, so the answer says that the
// address no longer belongs to the old sandbox.
func TestKeeper_LateDELOfTheSamePod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	now := b.add("a", 0)
	b.send(now.Add)
	b.write(nil)
	got := now.got(t)
	request := *b.add("a", 0).Request
	request.ContainerID = "older"
	var reply *cniwire.DelReply
	b.send(&Del{
		Request: &cniwire.DelRequest{
			PodName: request.PodName, PodNamespace: request.PodNamespace, ContainerID: "older", IfName: request.IfName, NetworkName: request.NetworkName,
		},
		Reply: func(r *cniwire.DelReply) { reply = r },
	})
	if reply == nil || !reply.Unknown || !slices.Equal(reply.Allocations, got.Allocations) {
		t.Errorf("late DEL: %+v, want unknown with %v", reply, got.Allocations)
	}
}
