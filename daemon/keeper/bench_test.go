package keeper

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

const testSubnet = "subnet-0123456789abcdef0"

// bench is an isolated Keeper: the test sends it messages and moves its clock. Tasks are
// recorded and never run: the test reports their results.
type bench struct {
	*Keeper
	t      *testing.T
	clock  time.Time
	disk   []Image
	begun  []Task
	events []Event
	flows  []FlowsTask // passes over connection tracking not done yet
	manual bool        // the test ends these itself
}

func (b *bench) Begin(t Task) {
	if f, ok := t.(FlowsTask); ok {
		b.flows = append(b.flows, f)
		return
	}
	b.begun = append(b.begun, t)
}
func (b *bench) Write(i Image)               { b.disk = append(b.disk, i) }
func (b *bench) Record(_ time.Time, e Event) { b.events = append(b.events, e) }

// middle is a jitter that returns the middle.
func middle(n time.Duration) time.Duration { return n / 2 }

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, clock: time.Unix(1_790_000_000, 0)}
	b.Keeper = New(Options{
		Settings: Settings{
			Policy: warmpool.Policy{
				WarmENI: 1, MaxPods: 29, Cooldown: 30 * time.Second, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute,
			},
			Provisioning: true, CheckpointPath: "ipam.json", VethPrefix: "eni", InstanceID: "i-0123456789abcdef0", PrimaryENI: "eni-primary",
			Subnets: resync.SubnetPolicy{NodeSubnet: testSubnet, Discovery: true}, TokenPrefix: "t",
		},
		Limits:  warmpool.Limits{IPv4PerENI: 10, ENIsByCard: []int{3}},
		Outside: b, Jitter: middle, Now: b.clock,
	})
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-primary", Primary: true, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.MustParseAddr("10.0.0.4"), RouteTable: 254,
	}})
	b.describe(1000)
	t.Cleanup(func() {
		if err := b.book.Check(); err != nil {
			t.Errorf("address book: %v", err)
		}
		for _, e := range b.events {
			if e, ok := e.(BookRefused); ok {
				t.Errorf("the book refused %T: %v", e.Event, e.Err)
			}
		}
	})
	return b
}

// describe sends EC2's answer to DescribeSubnets.
func (b *bench) describe(free int) {
	b.Handle(b.clock, SubnetsRead{Subnets: []resync.Subnet{{ID: testSubnet, CIDR: netip.MustParsePrefix("10.0.0.0/20"), AvailableIPs: free}}})
}

// send delivers a message and lets the Keeper react.
func (b *bench) send(m Message) {
	b.t.Helper()
	b.Handle(b.clock, m)
	b.step()
}

// step lets the Keeper react, and ends the passes over connection tracking that it begins.
func (b *bench) step() {
	b.Step(b.clock)
	for !b.manual && len(b.flows) > 0 {
		b.endFlows(nil)
	}
}

// endFlows ends the pass in progress.
func (b *bench) endFlows(err error) {
	b.t.Helper()
	if len(b.flows) != 1 {
		b.t.Fatalf("%d passes in progress, want 1", len(b.flows))
	}
	done := FlowsDone{Addresses: b.flows[0].Addresses, Err: err}
	b.flows = nil
	b.Handle(b.clock, done)
	b.Step(b.clock)
}

// pass moves the clock forward.
func (b *bench) pass(d time.Duration) {
	b.clock = b.clock.Add(d)
	b.step()
}

// give adds secondary IPs to the primary ENI.
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

// asked is an ADD with its answer.
type asked struct {
	*Add
	reply *cniwire.AddReply
}

func (b *bench) add(name string, wait time.Duration) *asked {
	a := &asked{Add: &Add{
		Request: &cniwire.AddRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"},
		Arrived: b.clock, Deadline: b.clock.Add(wait),
	}}
	a.Reply = func(r *cniwire.AddReply) {
		if a.reply != nil {
			b.t.Errorf("%s was answered twice", name)
		}
		a.reply = r
	}
	return a
}

// got returns the answer, which must exist.
func (a *asked) got(t *testing.T) *cniwire.AddReply {
	t.Helper()
	if a.reply == nil {
		t.Fatal("not answered")
	}
	return a.reply
}

func (a *asked) unanswered(t *testing.T, what string) {
	t.Helper()
	if a.reply != nil {
		t.Fatalf("%s was answered: %+v", what, a.reply)
	}
}

// ended is a DEL with its answer.
type ended struct {
	*Del
	reply *cniwire.DelReply
}

func del(name string) *ended {
	d := &ended{Del: &Del{
		Request: &cniwire.DelRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"},
	}}
	d.Reply = func(r *cniwire.DelReply) { d.reply = r }
	return d
}

func (d *ended) got(t *testing.T) *cniwire.DelReply {
	t.Helper()
	if d.reply == nil {
		t.Fatal("not answered")
	}
	return d.reply
}

func (d *ended) unanswered(t *testing.T, what string) {
	t.Helper()
	if d.reply != nil {
		t.Fatalf("%s was answered: %+v", what, d.reply)
	}
}

// placed gives pods addresses, on disk.
func (b *bench) placed(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.send(b.add(name, 0).Add)
		b.write(nil)
	}
}

// write ends the write in flight.
func (b *bench) write(err error) Image {
	b.t.Helper()
	if len(b.disk) == 0 {
		b.t.Fatal("nothing is being written")
	}
	img := b.disk[0]
	b.disk = b.disk[1:]
	img.Files[0].Data = append([]byte(nil), img.Files[0].Data...)
	b.send(Committed{Gen: img.Gen, Err: err})
	return img
}

// only returns the single operation in flight.
func (b *bench) only() *Operation {
	b.t.Helper()
	if len(b.ops) != 1 {
		b.t.Fatalf("%d operations in flight, want 1", len(b.ops))
	}
	for _, op := range b.ops {
		return op
	}
	return nil
}

// last returns the newest task of a type.
func last[T Task](b *bench) (T, bool) {
	for i := len(b.begun) - 1; i >= 0; i-- {
		if t, ok := b.begun[i].(T); ok {
			return t, true
		}
	}
	var none T
	return none, false
}

func count[T Task](b *bench) int { return len(all[T](b)) }

func all[T Task](b *bench) (out []T) {
	for _, begun := range b.begun {
		if t, ok := begun.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// operations returns the started operations of a kind.
func operations(b *bench, kind warmpool.PendingKind) (out []Operation) {
	for _, op := range all[Operation](b) {
		if op.Kind == kind {
			out = append(out, op)
		}
	}
	return out
}

// lastOp returns the newest operation of a kind.
func lastOp(b *bench, kind warmpool.PendingKind) (Operation, bool) {
	begun := operations(b, kind)
	if len(begun) == 0 {
		return Operation{}, false
	}
	return begun[len(begun)-1], true
}

func recorded[E Event](b *bench) (n int) {
	for _, e := range b.events {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

func failed(why cause.Code) error {
	return &Failure{Cause: why, Err: errors.New("as the test asked")}
}
