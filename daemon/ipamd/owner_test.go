package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// TestMain fails the package when a goroutine outlives its test.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := goroutinesLeft(); left != "" {
			fmt.Fprintln(os.Stderr, "goroutines that nobody ended:\n"+left)
			code = 1
		}
	}
	os.Exit(code)
}

// goroutinesLeft waits until only the caller's goroutine and those of the runtime and
// the test framework are left, and returns the stacks of the others if they stay.
func goroutinesLeft() string {
	deadline := time.Now().Add(5 * time.Second)
	for {
		buf := make([]byte, 1<<20)
		var left []string
		for i, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if i > 0 && strings.Contains(stack, "cnictl/") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
		runtime.Gosched()
	}
}

const testSubnet = "subnet-0123456789abcdef0"

// bench is an owner without a loop: the test hands it messages and moves its clock.
// Operations are recorded and never run: the test reports their ends.
type bench struct {
	*owner
	t     *testing.T
	clock time.Time
	disk  chan image
	asked int // goroutines the executor was asked for
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, clock: time.Unix(1_790_000_000, 0), disk: make(chan image, 1)}
	instance, ok := limits.Lookup("m5.large")
	if !ok {
		t.Fatal("no limits of m5.large")
	}
	log := slog.New(slog.DiscardHandler)
	c := config.Config{WarmENI: 1, Cooldown: 30 * time.Second, VethPrefix: "eni"}
	b.owner = &owner{
		log: log, now: func() time.Time { return b.clock }, metrics: metrics.New(metrics.Options{}),
		inbox: make(chan message, inboxSize), ended: make(chan struct{}),
		node: node{
			config: c, instance: instance, limits: plannerLimits(instance, false), provisioning: true, checkpointPath: "ipam.json",
			identity:     imds.Identity{SubnetID: testSubnet, InstanceType: "m5.large"},
			subnetPolicy: resync.SubnetPolicy{NodeSubnet: testSubnet, Discovery: true},
			otherENIs:    make([]int, 1), otherDevices: make([][]int, 1), started: b.clock,
		},
		book: ipam.New(ipam.Options{Cooldown: c.Cooldown}), ledger: newLedger(), commits: b.disk,
		ops: make(map[opID]*operation), backoff: newBackoffs(), attachments: make(map[ipam.ENIID]string),
		history: newHistory(), calls: &callCounts{}, policy: policyOf(c, false, 29),
	}
	b.exec = &executor{spawn: func(func(context.Context)) { b.asked++ }, log: log, post: b.deliver}
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-primary", Primary: true, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.MustParseAddr("10.0.0.4"), RouteTable: 254,
	}})
	b.describe(1000)
	t.Cleanup(func() {
		if err := b.book.Check(); err != nil {
			t.Errorf("address book: %v", err)
		}
	})
	return b
}

// describe is EC2's answer to DescribeSubnets.
func (b *bench) describe(free int) {
	b.handle(subnetsRead{subnets: []vpcapi.Subnet{{ID: testSubnet, CIDR: netip.MustParsePrefix("10.0.0.0/20"), AvailableIPs: free}}})
}

// tell hands over a message and lets the owner draw its consequences.
func (b *bench) tell(m message) {
	b.t.Helper()
	b.handle(m)
	b.step(b.clock)
}

// pass moves the clock.
func (b *bench) pass(d time.Duration) {
	b.clock = b.clock.Add(d)
	b.step(b.clock)
}

// give puts secondary IPs on the primary ENI.
func (b *bench) give(n int) {
	b.apply(b.clock, ipam.AddCIDRs{ID: "eni-primary", CIDRs: secondary(n)})
}

func secondary(n int) []netip.Prefix {
	var out []netip.Prefix
	for i := range n {
		out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)}), 32))
	}
	return out
}

func (b *bench) add(name string, wait time.Duration) *addRequest {
	return &addRequest{
		req:     &cniwire.AddRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"},
		arrived: b.clock, deadline: b.clock.Add(wait), reply: make(chan *cniwire.AddReply, 1),
	}
}

func del(name string) *delRequest {
	return &delRequest{
		req:   &cniwire.DelRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"},
		reply: make(chan *cniwire.DelReply, 1),
	}
}

// write ends the write that is under way.
func (b *bench) write(err error) image {
	b.t.Helper()
	select {
	case img := <-b.disk:
		b.tell(committed{gen: img.gen, err: err})
		return img
	default:
		b.t.Fatal("nothing is being written")
		return image{}
	}
}

// got is an answer that must be there.
func got[T any](t *testing.T, from chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	default:
		t.Fatal("not answered")
		var none T
		return none
	}
}

func unanswered[T any](t *testing.T, what string, from chan T) {
	t.Helper()
	select {
	case v := <-from:
		t.Fatalf("%s was answered: %+v", what, v)
	default:
	}
}

// only is the one operation in flight.
func (b *bench) only() *operation {
	b.t.Helper()
	if len(b.ops) != 1 {
		b.t.Fatalf("%d operations in flight, want 1", len(b.ops))
	}
	for _, op := range b.ops {
		return op
	}
	return nil
}

func ec2Error(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "as the test asked"}
}

func TestOwner_AnswersAfterTheWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	first, second := b.add("a", 0), b.add("b", 0)
	b.tell(first)
	b.tell(second)
	unanswered(t, "ADD before its write", first.reply)
	b.write(nil)
	if r := got(t, first.reply); !r.Success {
		t.Errorf("a: %+v", r)
	}
	unanswered(t, "ADD that the write does not hold", second.reply)
	img := b.write(nil)
	if r := got(t, second.reply); !r.Success {
		t.Errorf("b: %+v", r)
	}
	if entries, err := checkpoint.Decode(img.data); err != nil || len(entries) != 2 {
		t.Errorf("file holds %v, %v; want both", entries, err)
	}
}

// TestOwner_RepeatedADDOfARevertedOne: the write of an ADD fails while a repetition of
// it waits for the next write. Answering that with success would give an address
// that the book has taken back.
func TestOwner_RepeatedADDOfARevertedOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	first, again := b.add("a", 0), b.add("a", 0)
	b.tell(first)
	b.tell(b.add("other", 0)) // a later generation
	b.tell(again)
	b.write(errors.New("disk full"))
	if r := got(t, first.reply); r.Success || r.Cause != string(cause.CheckpointUnwritable) {
		t.Errorf("a: %+v", r)
	}
	b.pass(commitRetry)
	b.write(nil)
	if r := got(t, again.reply); r.Success {
		t.Errorf("repeated ADD got %v, which no sandbox holds", r.Allocations)
	}
}

// TestOwner_DELOvertakesTheWriteOfItsADD: the ADD's runtime has given up and deletes.
func TestOwner_DELOvertakesTheWriteOfItsADD(t *testing.T) {
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
			b.tell(a)
			b.tell(d)
			b.write(row.err)
			if r := got(t, a.reply); r.Success {
				t.Errorf("ADD of a deleted sandbox: %+v", r)
			}
			b.pass(commitRetry)
			b.write(nil)
			if r := got(t, d.reply); !r.Success {
				t.Errorf("DEL: %+v", r)
			}
			if len(b.ledger.rows) != 0 {
				t.Errorf("file still holds %s", b.ledger.rows)
			}
		})
	}
}

// TestOwner_HangingDisk fails those who wait, and recovers when the disk does.
func TestOwner_HangingDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	a, d := b.add("a", 0), del("a")
	b.tell(a)
	if wake := b.untilNextWake(b.clock); wake > commitLimit {
		t.Errorf("sleeps %v while a write is under way, want %v at most", wake, commitLimit)
	}
	b.pass(commitLimit)
	if r := got(t, a.reply); r.Success || r.Cause != string(cause.CheckpointUnwritable) {
		t.Errorf("ADD during a hang: %+v", r)
	}
	late := b.add("late", 0)
	b.tell(late)
	if r := got(t, late.reply); r.Success {
		t.Errorf("a later ADD: %+v", r)
	}
	b.tell(d)
	if r := got(t, d.reply); !r.Unknown {
		t.Errorf("DEL of a sandbox whose ADD failed: %+v", r)
	}
	b.write(nil) // of the ADD that was taken back
	if img := b.write(nil); strings.Contains(string(img.data), `"10.0.1.`) {
		t.Errorf("the file after the hang: %s", img.data)
	}
	next := b.add("next", 0)
	b.tell(next)
	b.write(nil)
	if r := got(t, next.reply); !r.Success {
		t.Errorf("ADD after the hang: %+v", r)
	}
}

// TestOwner_End stops the loop with and without a disk that answers; who asks then is
// not left waiting.
func TestOwner_End(t *testing.T) {
	t.Parallel()
	for _, disk := range []string{"works", "fails", "hangs"} {
		t.Run(disk, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.now = time.Now
				b.give(9)
				stop := make(chan struct{})
				go b.run(stop)
				server := &backend{owner: b.owner}
				answer := make(chan *cniwire.AddReply, 1)
				go func() { answer <- server.Add(t.Context(), b.add("a", 0).req) }()
				synctest.Wait()
				close(stop)
				img := <-b.disk
				switch disk {
				case "works":
					b.deliver(committed{gen: img.gen})
				case "fails":
					b.deliver(committed{gen: img.gen, err: errors.New("disk full")})
				}
				if r := <-answer; r.Success != (disk == "works") {
					t.Errorf("ADD: %+v", r)
				}
				<-b.ended
				if r := server.Add(t.Context(), b.add("b", 0).req); r.Cause != string(cause.DaemonTerminating) {
					t.Errorf("ADD after the end: %+v", r)
				}
				if r := server.Del(t.Context(), del("a").req); r.Cause != string(cause.DaemonTerminating) {
					t.Errorf("DEL after the end: %+v", r)
				}
				if v := (&daemon{owner: b.owner}).View(); v.Now.IsZero() {
					t.Error("view after the end has no time")
				}
			})
		})
	}
}

// TestOwner_CallerGoesAway ends the wait of an ADD whose client has gone.
func TestOwner_CallerGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.now = time.Now
		stop := make(chan struct{})
		go b.run(stop)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan *cniwire.AddReply, 1)
		go func() { answer <- (&backend{owner: b.owner, wait: time.Minute}).Add(ctx, b.add("a", 0).req) }()
		synctest.Wait()
		cancel()
		if r := <-answer; r.Success {
			t.Errorf("ADD: %+v", r)
		}
		close(stop)
		<-b.ended
		if len(b.waiting) != 0 {
			t.Errorf("%d ADDs still wait", len(b.waiting))
		}
	})
}

// TestOwner_FirstComeFirstServed gives what becomes free to the oldest, and the
// sandbox that was deleted meanwhile nothing.
func TestOwner_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var adds []*addRequest
	for _, name := range []string{"a", "b", "c"} {
		r := b.add(name, 10*time.Second)
		b.tell(r)
		adds = append(adds, r)
	}
	d := del("a")
	b.tell(d)
	if r := got(t, adds[0].reply); r.Success || !got(t, d.reply).Unknown {
		t.Errorf("deleted while waiting: %+v", r)
	}
	var fill *operation
	for _, op := range b.ops {
		if op.pending.ENI != "" {
			fill = op
		}
	}
	b.tell(assignDone{id: fill.id, cidrs: secondary(1)})
	b.write(nil)
	if r := got(t, adds[1].reply); !r.Success {
		t.Errorf("b: %+v", r)
	}
	unanswered(t, "c", adds[2].reply)
}

// TestOwner_ADDThatFindsNothing checks when it is answered and with which cause.
func TestOwner_ADDThatFindsNothing(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Second
	rows := []struct {
		name   string
		before func(b *bench)
		wait   time.Duration
		during func(b *bench)
		after  time.Duration // when the answer comes
		cause  cause.Code
		says   string
	}{
		{name: "no wait", wait: 0, cause: cause.PoolDry},
		{name: "no ENI may be attached", before: func(b *bench) { b.policy.MaxENI = 1; b.node.limits.IPv4PerENI = 1 }, wait: wait, cause: cause.PoolFull, says: "MAX_ENI is 1"},
		{name: "every subnet excluded", before: func(b *bench) {
			b.node.limits.IPv4PerENI = 10
			b.subnets.all[0].Tags = map[string]string{resync.TagSubnetRole: "0"}
			b.give(9)
			b.policy.WarmENI = 0
			for i := range 9 {
				b.tell(b.add(fmt.Sprint("p", i), 0))
			}
		}, wait: wait, cause: cause.NoUsableSubnet},
		{name: "shutting down", before: func(b *bench) { b.tell(terminate{make(chan struct{})}) }, wait: wait, cause: cause.DaemonTerminating},
		{name: "EC2 does not answer", wait: wait, after: wait, cause: cause.PoolDry, says: "EC2 has not finished the assign on eni-primary that began 10s ago"},
		{name: "link does not appear", before: func(b *bench) { b.node.limits.IPv4PerENI = 2; b.give(1); b.tell(b.add("p", 0)); b.write(nil) }, wait: wait,
			during: func(b *bench) {
				for _, op := range b.ops {
					b.tell(eniAttached{op.id, "eni-new"})
				}
			},
			after: wait, cause: cause.PoolDry, says: "the link of eni-new has not appeared"},
		{name: "unauthorized", wait: wait, during: func(b *bench) {
			for len(b.ops) > 0 {
				for _, op := range b.ops {
					if op.pending.ENI != "" {
						b.handle(assignDone{id: op.id, err: ec2Error("UnauthorizedOperation")})
					} else {
						b.handle(attachDone{id: op.id, err: ec2Error("UnauthorizedOperation")})
					}
				}
				b.step(b.clock)
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
			b.tell(r)
			if row.during != nil {
				row.during(b)
			}
			if row.after > 0 {
				b.pass(row.after - time.Millisecond)
				unanswered(t, "ADD before its time", r.reply)
				b.pass(time.Millisecond)
			}
			reply := got(t, r.reply)
			if reply.Success || reply.Cause != string(row.cause) || !strings.Contains(reply.Detail, row.says) {
				t.Errorf("%+v\nwant cause %s, detail with %q", reply, row.cause, row.says)
			}
		})
	}
}

// TestOwner_SubnetThatWasFull: a count of no free addresses is not believed for ever.
func TestOwner_SubnetThatWasFull(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(0)
	b.node.limits.IPv4PerENI = 2
	b.give(1)
	b.tell(b.add("a", 0))
	b.write(nil)
	r := b.add("b", time.Hour)
	b.tell(r)
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
	for range exhaustedMost / time.Second {
		b.pass(time.Second)
	}
	if !b.subnets.refreshing {
		t.Fatal("nobody asks whether the subnet is still full")
	}
	b.describe(100)
	b.step(b.clock)
	if len(b.ops) == 0 {
		t.Error("the subnet has addresses again, and no ENI is made")
	}
}

// TestOwner_FullENI: EC2 takes an ENI for full where the table does not. It is not
// asked again at once.
func TestOwner_FullENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.step(b.clock)
	op := b.only()
	b.tell(assignDone{id: op.id, cidrs: secondary(4), full: true})
	for _, again := range b.ops {
		if again.pending.ENI == op.pending.ENI {
			t.Fatalf("asked again at once: %+v", again)
		}
	}
	if until := b.backoff.eni["eni-primary"].until; !until.After(b.clock) {
		t.Error("no back-off")
	}
}

// TestOwner_VanishedENI gives no address of an ENI that EC2 does not know.
func TestOwner_VanishedENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(5)
	b.step(b.clock)
	b.tell(assignDone{id: b.only().id, err: ec2Error("InvalidNetworkInterfaceID.NotFound")})
	r := b.add("a", 0)
	b.tell(r)
	if reply := got(t, r.reply); reply.Success {
		t.Errorf("got %v of an ENI that does not exist", reply.Allocations)
	}
}

// TestOwner_FragmentedSubnetRecovers: the clock of a subnet ends with the first
// prefix it gives, so the next shortage starts small again.
func TestOwner_FragmentedSubnetRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.node.prefixes, b.policy.PrefixDelegation, b.policy.WarmPrefix = true, true, 1
	b.step(b.clock)
	b.tell(assignDone{id: b.only().id, err: ec2Error("InsufficientCidrBlocks")})
	if b.backoff.subnetPrefixes[testSubnet].until.IsZero() {
		t.Fatal("no back-off of the subnet")
	}
	b.describe(1000)
	b.pass(exhaustedFirst)
	b.tell(assignDone{id: b.only().id, cidrs: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/28")}})
	if c := b.backoff.subnetPrefixes[testSubnet]; *c != (clock{}) {
		t.Errorf("clock after a success: %+v", c)
	}
}

// TestOwner_RecoveredAllocationOutlivesADEL: nobody knows which sandbox an allocation
// rebuilt from the kernel belongs to. A late DEL of an older sandbox of the same pod
// must not take the living one's address.
func TestOwner_RecoveredAllocationOutlivesADEL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	link := netnames.HostVeth("eni", "shop", "a", 0)
	live := resync.Recovered(link)
	b.apply(b.clock, ipam.Restore{Sandbox: live, Address: netip.MustParseAddr("10.0.1.1")})
	a, _ := b.book.Lookup(live)
	b.ledger.put(a)
	d := del("a")
	b.tell(d)
	if r := got(t, d.reply); !r.Unknown {
		t.Errorf("DEL: %+v", r)
	}
	b.tell(linksRead{map[string]int{link: 7}})
	if !b.holds(live) {
		t.Fatal("the allocation ended while its link lives")
	}
	asked := b.asked
	b.tell(linksRead{nil})
	if b.asked == asked || !b.holds(live) {
		t.Fatal("want the rules dropped before the address is free")
	}
	b.tell(recoveredGone{[]ipam.Assignment{a}})
	b.write(nil)
	if b.holds(live) || len(b.ledger.rows) != 0 {
		t.Error("the allocation outlived its link")
	}
}

// TestOwner_LateENI holds the slot of an ENI that could not be set up at start, until
// it can.
func TestOwner_LateENI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	late := resync.Attached{
		ENI:   ipam.ENI{ID: "eni-late", Device: 1, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.5"), RouteTable: 2},
		CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.3.1/32")},
	}
	b.node.countOthers([]resync.Attached{late})
	pod := ipam.Sandbox{Network: "aws-cni", ContainerID: "old", IfName: "eth0"}
	b.apply(b.clock, ipam.Restore{Sandbox: pod, Address: netip.MustParseAddr("10.0.3.1")})
	r := b.add("a", 0)
	b.tell(r)
	if op := b.only(); op.pending.Device != 2 {
		t.Errorf("new ENI at device %d, where the late one is at 1", op.pending.Device)
	}
	b.tell(eniAdopted{late})
	if a, _ := b.book.Lookup(pod); a.ENI != "eni-late" {
		t.Errorf("allocation of a pod on it: %+v", a)
	}
	if b.node.otherENIs[0] != 0 || len(b.node.otherDevices[0]) != 0 {
		t.Errorf("still counted as another's: %v %v", b.node.otherENIs, b.node.otherDevices)
	}
}

// TestOwner_CountsActions shows what runs and what failed under the original's names.
func TestOwner_CountsActions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.step(b.clock)
	series := func(name, fn string) (value float64) {
		families, err := b.metrics.Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && m.GetLabel()[0].GetValue() == fn {
					value = m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return value
	}
	if n := series("awscni_ipamd_action_inprogress", "increaseDatastorePool"); n != 1 {
		t.Errorf("%v actions in progress, want 1", n)
	}
	b.handle(assignDone{id: b.only().id, err: ec2Error("InternalError")})
	if n := series("awscni_ipamd_action_inprogress", "increaseDatastorePool"); n != 0 {
		t.Errorf("%v actions in progress after it, want 0", n)
	}
	if n := series("awscni_ipamd_error_count", "increaseIPPoolAllocIPAddressesFailed"); n != 1 {
		t.Errorf("%v errors, want 1", n)
	}
}

// TestSummary_KnownListsAreNotNull: null means "not known".
func TestSummary_KnownListsAreNotNull(t *testing.T) {
	t.Parallel()
	s := newBench(t).summary(time.Unix(1_790_000_000, 0))
	for name, null := range map[string]bool{
		"operations": s.Operations == nil, "backoffs": s.Backoffs == nil, "subnets": s.Subnets == nil,
		"lastErrors": s.LastErrors == nil, "ec2Calls": s.EC2Calls == nil, "cards": s.Cards == nil,
	} {
		if null {
			t.Errorf("%s is null", name)
		}
	}
}

// TestSummary_AddressLimit applies MAX_ENI and other ENIs once.
func TestSummary_AddressLimit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name           string
		maxENI, others int
		prefixes       bool
		enis, want     int
	}{
		{"all", 0, 0, false, 3, 27}, {"MAX_ENI", 2, 0, false, 2, 18}, {"one unmanaged", 0, 1, false, 3, 18},
		{"MAX_ENI and one unmanaged", 2, 1, false, 2, 9}, {"MAX_ENI above the type", 9, 0, false, 3, 27}, {"prefixes", 0, 0, true, 3, 432},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.policy.MaxENI, b.node.otherENIs[0], b.node.prefixes = row.maxENI, row.others, row.prefixes
			card := b.summary(b.clock).Cards[0]
			if *card.ENILimit != row.enis || *card.AddressLimit != row.want {
				t.Errorf("ENIs %d, addresses %d, want %d and %d", *card.ENILimit, *card.AddressLimit, row.enis, row.want)
			}
			if mode := map[bool]string{false: introspect.ModeSecondaryIP, true: introspect.ModePrefix}[row.prefixes]; card.Mode != mode {
				t.Errorf("mode %s, want %s", card.Mode, mode)
			}
		})
	}
}

// TestOwner_RestoredAllocationEndsWithItsLink: a start saw the link of a pod whose DEL
// had come while no daemon ran. Pods of this process are never judged by links: an
// ADD's link may be yet to come.
func TestOwner_RestoredAllocationEndsWithItsLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	restored := ipam.Sandbox{Network: "aws-cni", ContainerID: "restored", IfName: "eth0"}
	fresh := ipam.Sandbox{Network: "aws-cni", ContainerID: "fresh", IfName: "eth0"}
	for i, s := range []ipam.Sandbox{restored, fresh} {
		b.apply(b.clock, ipam.Restore{Sandbox: s, Pod: ipam.Pod{Namespace: "shop", Name: s.ContainerID}, Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + i)})})
		a, _ := b.book.Lookup(s)
		b.ledger.put(a)
	}
	b.restored = map[ipam.Sandbox]bool{restored: true}
	link := netnames.HostVeth("eni", "shop", "restored", 0)
	b.tell(linksRead{map[string]int{link: 7}}) // and what the pool wants is asked for
	asked := b.asked
	b.tell(linksRead{map[string]int{link: 7}})
	if b.asked != asked {
		t.Fatal("an allocation was given up while its link lives")
	}
	b.tell(linksRead{nil})
	if b.asked != asked+1 || !b.holds(restored) {
		t.Fatal("want the rules dropped before the address is free")
	}
	a, _ := b.book.Lookup(restored)
	b.tell(recoveredGone{[]ipam.Assignment{a}})
	b.write(nil)
	if b.holds(restored) || !b.holds(fresh) || len(b.restored) != 0 {
		t.Errorf("restored held: %v, fresh held: %v, still to judge: %d", b.holds(restored), b.holds(fresh), len(b.restored))
	}
}
