package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/cluster"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

const customSubnet = "subnet-0aaaaaaaaaaaaaaaa"

// customBench is a bench with custom networking.
func customBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.policy.CustomNetworking = true
	b.settings.Subnets = resync.SubnetPolicy{NodeSubnet: testSubnet, Custom: true}
	b.Keeper.groups = []string{"sg-primary"}
	b.list()
	return b
}

// list is EC2's answer, including the ENIConfigs' subnets.
func (b *bench) list() {
	all := []resync.Subnet{{ID: testSubnet, AvailableIPs: 1000}, {ID: customSubnet, AvailableIPs: 1000}, {ID: customSubnet + "b", AvailableIPs: 1000}}
	b.Handle(b.clock, SubnetsRead{Subnets: all})
}

func eniConfig(subnet string, groups ...string) ENIConfigRead {
	return ENIConfigRead{Name: "zone-a", Config: cluster.ENIConfig{Name: "zone-a", Subnet: subnet, SecurityGroups: groups}}
}

// TestENIConfig_Changes sends the API server's reports one after the other, and checks the
// subnet and groups of new ENIs.
func TestENIConfig_Changes(t *testing.T) {
	t.Parallel()
	missing := ENIConfigRead{Name: "zone-a", Err: errors.New("no ENIConfig zone-a")}
	away := func(text string) ENIConfigRead {
		return ENIConfigRead{Name: "zone-a", Err: errors.New(text), Unread: true}
	}
	renamed := eniConfig(customSubnet + "b")
	renamed.Name = "zone-b"
	otherAway := away("away")
	otherAway.Name = "zone-b"
	rows := []struct {
		name   string
		said   []ENIConfigRead
		subnet string // of new ENIs, "" if none can be created
		groups []string
		notes  int // of failures
	}{
		{name: "nothing yet"},
		{name: "found", said: []ENIConfigRead{eniConfig(customSubnet, "sg-1")}, subnet: customSubnet, groups: []string{"sg-1"}},
		{name: "without groups", said: []ENIConfigRead{eniConfig(customSubnet)}, subnet: customSubnet, groups: []string{"sg-primary"}},
		{name: "missing", said: []ENIConfigRead{missing, missing}, notes: 1},
		{name: "the API server was never there", said: []ENIConfigRead{away("timeout"), away("refused from 10.0.0.1:1"), away("refused from 10.0.0.1:2")}, notes: 1},
		{name: "away since", said: []ENIConfigRead{eniConfig(customSubnet, "sg-1"), away("timeout")}, subnet: customSubnet, groups: []string{"sg-1"}},
		{name: "deleted since", said: []ENIConfigRead{eniConfig(customSubnet), missing}, notes: 1},
		{name: "back", said: []ENIConfigRead{eniConfig(customSubnet), missing, eniConfig(customSubnet)}, subnet: customSubnet, groups: []string{"sg-primary"}, notes: 1},
		{name: "changed live", said: []ENIConfigRead{eniConfig(customSubnet, "sg-1"), eniConfig(customSubnet+"b", "sg-2")}, subnet: customSubnet + "b", groups: []string{"sg-2"}},
		{name: "another is selected", said: []ENIConfigRead{eniConfig(customSubnet), renamed}, subnet: customSubnet + "b", groups: []string{"sg-primary"}},
		{name: "another is selected and cannot be read", said: []ENIConfigRead{eniConfig(customSubnet), otherAway, otherAway}, notes: 1},
		{name: "a subnet of another zone", said: []ENIConfigRead{eniConfig("subnet-0ccccccccccccccccc")}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := customBench(t)
			b.send(NodeRead{Unschedulable: true}) // nothing is created before a pod waits
			for _, m := range row.said {
				b.send(m)
			}
			r := b.add("a", time.Minute)
			b.send(r.Add)
			if b.subnets.refreshing { // an older list cannot resolve the current ENIConfig
				b.list()
				b.Step(b.clock)
			}
			if recorded[ENIConfigFailed](b) != row.notes {
				t.Errorf("recorded %d failures, want %d", recorded[ENIConfigFailed](b), row.notes)
			}
			// Pods wait for an ENI, unless none can come.
			if row.subnet == "" {
				if got := r.got(t); got.Cause != string(cause.ENIConfigMissing) || got.Transient {
					t.Errorf("%+v", got)
				}
				if n := len(operations(b, warmpool.PendingAttach)); n > 0 {
					t.Errorf("%d ENIs are made without an ENIConfig", n)
				}
				return
			}
			r.unanswered(t, "a pod for which an ENI is made")
			task, ok := lastOp(b, warmpool.PendingAttach)
			if !ok || task.SubnetID != row.subnet || !slices.Equal(task.create.SecurityGroups, row.groups) {
				t.Errorf("new ENI: %+v", task.create)
			}
		})
	}
}

// TestENIConfig_Flapping: the same ENIConfig coming and going does not end a back-off;
// another one does.
func TestENIConfig_Flapping(t *testing.T) {
	t.Parallel()
	b := customBench(t)
	b.send(eniConfig(customSubnet))
	b.backoff.attach.Fail(b.clock, b.clock, cause.EC2Throttled, time.Minute, time.Minute, middle)
	for range 3 {
		b.send(ENIConfigRead{Name: "zone-a", Err: errors.New("missing")})
		b.send(eniConfig(customSubnet))
	}
	if !b.backoff.attach.Running(b.clock) {
		t.Error("the back-off is over")
	}
	b.send(eniConfig(customSubnet, "sg-2"))
	if b.backoff.attach.Running(b.clock) {
		t.Error("a new ENIConfig waits for what the old one failed at")
	}
}

func groupsBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.Keeper.groups = []string{"sg-a", "sg-b"}
	for i, id := range []ipam.ENIID{"eni-2", "eni-3"} {
		b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{ID: id, Device: i + 1, PrimaryIP: netip.AddrFrom4([4]byte{10, 0, 9, byte(i + 4)}), RouteTable: i + 2}})
	}
	return b
}

// TestGroups_LateDescription: EC2 still shows the old groups for a moment.
func TestGroups_LateDescription(t *testing.T) {
	t.Parallel()
	b := groupsBench(t)
	old := []resync.ENI{{ID: "eni-2", SecurityGroups: []string{"sg-old"}}}
	b.sg.record(old, b.clock)
	b.Step(b.clock)
	b.send(GroupsDone{ENIs: []ipam.ENIID{"eni-2"}, Groups: b.Keeper.groups})
	for _, row := range []struct {
		after time.Duration
		tasks int
	}{{-time.Second, 1}, {writeSettle - 1, 1}, {writeSettle, 2}} {
		b.sg.record(old, b.clock.Add(row.after))
		b.Step(b.clock)
		if n := count[GroupsTask](b); n != row.tasks {
			t.Errorf("%v after the write: %d writes, want %d", row.after, n, row.tasks)
		}
	}
}

// groupsCalls answers SetSecurityGroups and collects the task's messages.
type groupsCalls struct {
	Calls
	err   map[ipam.ENIID]error
	asked []ipam.ENIID
	done  GroupsDone
}

func (c *groupsCalls) Post(m Message) { c.done = m.(GroupsDone) }

func (c *groupsCalls) SetSecurityGroups(_ context.Context, id ipam.ENIID, _ []string) error {
	c.asked = append(c.asked, id)
	return c.err[id]
}

// TestGroupsTask: one ENI's failure does not affect the others, unless it applies to all.
func TestGroupsTask(t *testing.T) {
	t.Parallel()
	all := []ipam.ENIID{"eni-1", "eni-2", "eni-3"}
	gone := &Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("gone")}
	for _, row := range []struct {
		name              string
		err               error // of eni-2
		asked, done, gone []ipam.ENIID
	}{
		{"all work", nil, all, all, nil},
		{"one is gone", gone, all, []ipam.ENIID{"eni-1", "eni-3"}, []ipam.ENIID{"eni-2"}},
		{"one refuses", failed(cause.EC2Error), all, []ipam.ENIID{"eni-1", "eni-3"}, nil},
		{"throttled", failed(cause.EC2Throttled), all[:2], all[:1], nil},
		{"not allowed", failed(cause.EC2Unauthorized), all[:2], all[:1], nil},
	} {
		c := &groupsCalls{err: map[ipam.ENIID]error{"eni-2": row.err}}
		GroupsTask{all, []string{"sg-1"}}.run(t.Context(), c)
		done := c.done
		failedThere := row.err != nil && row.gone == nil
		if !slices.Equal(c.asked, row.asked) || !slices.Equal(done.ENIs, row.done) || !slices.Equal(done.Gone, row.gone) ||
			(done.Err != nil) != failedThere || (done.Failed == "eni-2") != failedThere {
			t.Errorf("%s: asked %v, %+v", row.name, c.asked, done)
		}
	}
}

// TestReady_Table is the table of readiness.
func TestReady_Table(t *testing.T) {
	t.Parallel()
	full := func(b *bench) {
		b.policy.MaxENI = 1
		b.give(9)
		for i := range 9 {
			b.send(b.add(fmt.Sprint("p", i), 0).Add)
		}
	}
	for _, row := range []struct {
		name   string
		before func(b *bench)
		want   bool
	}{
		{"no addresses yet", func(*bench) {}, false},
		{"one is free", func(b *bench) { b.give(1) }, true},
		{"as many pods as it can have", full, true},
		{"all rest", func(b *bench) {
			full(b)
			b.write(nil)
			for i := range 9 {
				b.send(del(fmt.Sprint("p", i)).Del)
			}
		}, true},
		{"dry, and EC2 throttles", func(b *bench) {
			b.give(9)
			for i := range 9 {
				b.send(b.add(fmt.Sprint("p", i), 0).Add)
			}
			b.ops = map[OpID]*Operation{}
			b.backoff.attach.Fail(b.clock, b.clock, cause.EC2Throttled, ThrottleFirst, ThrottleMax, middle)
		}, false},
		{"its only ENI is gone", func(b *bench) { b.give(1); b.apply(b.clock, ipam.QuarantineENI{ID: "eni-primary"}) }, false},
		{"its only ENI is gone, and no other may come", func(b *bench) { full(b); b.apply(b.clock, ipam.QuarantineENI{ID: "eni-primary"}) }, false},
		{"all addresses are gone", func(b *bench) {
			b.policy.MaxENI = 1
			b.give(9)
			b.apply(b.clock, ipam.QuarantineCIDRs{ID: "eni-primary", CIDRs: secondary(9)})
		}, false},
		{"the ENI is excluded", func(b *bench) { full(b); b.apply(b.clock, ipam.SetExcluded{ID: "eni-primary", Excluded: true}) }, false},
		{"custom networking, the primary alone", func(b *bench) { full(b); b.policy.CustomNetworking = true }, false},
		{"shutting down", func(b *bench) { b.give(1); b.send(Terminate{}) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			row.before(b)
			if got := b.Ready(b.clock); got != row.want {
				t.Errorf("ready: %v", got)
			}
		})
	}
}

// TestExpected: bound pods make the pool grow before their ADDs, count once, and are
// forgotten when their ADD comes, when they go, or when no ADD comes for long.
func TestExpected(t *testing.T) {
	t.Parallel()
	pods := func(names ...string) (m PodsBound) {
		for _, n := range names {
			m.Pods = append(m.Pods, ipam.Pod{Namespace: "shop", Name: n})
		}
		return m
	}
	one := func(b *bench) int { return b.expected(b.clock)[0] }
	b := newBench(t)
	b.give(2)
	if b.expected(b.clock) != nil {
		t.Error("what was not reported is known")
	}
	b.policy.WarmENI, b.policy.WarmIP = 0, 2
	b.Step(b.clock)
	if n := len(operations(b, warmpool.PendingAssign)); n != 0 {
		t.Fatalf("%d requests though the pool is as it should be", n)
	}
	b.send(pods("a", "b", "c", "d"))
	task, ok := lastOp(b, warmpool.PendingAssign)
	if !ok || task.IPs < 2 || !Urgent(task) || one(b) != 4 {
		t.Fatalf("for 4 pods, %d expected, 2 free: %+v", one(b), task)
	}
	b.send(b.add("a", 0).Add)
	if one(b) != 3 {
		t.Errorf("after an ADD: %d", one(b))
	}
	b.send(pods("a", "b", "c", "d")) // the pod's status does not show it yet
	if one(b) != 3 {
		t.Errorf("expects again one that has an address: %d", one(b))
	}
	b.send(b.add("b", 0).Add)
	waits := b.add("c", time.Minute)
	b.send(waits.Add)
	twice := b.add("c", time.Minute) // the runtime's retry
	twice.Request.ContainerID = "c-again"
	b.send(twice.Add)
	if one(b) != 1 {
		t.Errorf("with two ADDs of one that wait: %d", one(b))
	}
	b.send(pods())
	if one(b) != 0 {
		t.Errorf("after they went: %d", one(b))
	}
	b.send(pods("stuck"))
	for range int(boundPatience/time.Second) - 1 {
		b.pass(time.Second)
		b.send(pods("stuck"))
	}
	if one(b) != 1 {
		t.Errorf("before its time: %d", one(b))
	}
	b.pass(time.Second)
	if one(b) != 0 {
		t.Errorf("of one that does not ask: %d", one(b))
	}
	b.send(pods("stuck", "new"))
	if one(b) != 1 {
		t.Errorf("beside one that does not ask: %d", one(b))
	}
	b.send(PodsUnseen{})
	if b.expected(b.clock) != nil {
		t.Error("the API server is away, and its last word is believed")
	}
	b.pass(time.Minute)
	b.send(pods("stuck", "new"))
	if one(b) != 1 {
		t.Errorf("the API server was away, and %d are waited for again", one(b))
	}
}

// TestExpected_EveryCard: a pod with an interface per card is expected on every card.
func TestExpected_EveryCard(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 3)
	b.recon.efaOnly = []int{1}
	b.send(PodsBound{Pods: []ipam.Pod{{Namespace: "shop", Name: "all", Interfaces: 2}, {Namespace: "shop", Name: "one"}}})
	if got := b.expected(b.clock); !slices.Equal(got, []int{2, 0, 1}) {
		t.Errorf("%v", got)
	}
}

// ipv6Bench is a bench of an IPv6 cluster.
func ipv6Bench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.Keeper = New(Options{
		Settings: Settings{
			Policy: warmpool.Policy{IPv6: true, PrefixDelegation: true, MaxPods: 110, Cooldown: 30 * time.Second}, IPv6: true, Provisioning: true,
			InstanceID: "i-0123456789abcdef0", PrimaryENI: "eni-primary", CheckpointPath: "ipam.json", VethPrefix: "eni",
			Subnets: resync.SubnetPolicy{NodeSubnet: testSubnet},
		},
		VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00::/56")},
		Limits:   warmpool.Limits{IPv4PerENI: 10, ENIsByCard: []int{3}}, Outside: b, Jitter: middle, Now: b.clock,
	})
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-primary", Primary: true, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("fd00::/64"), PrimaryIP: netip.MustParseAddr("fd00::4"), RouteTable: 254,
	}})
	b.describe(1000)
	return b
}

var block = netip.MustParsePrefix("fd00:0:0:0:1::/80")

// TestIPv6_Pool: the pool is one /80, pods wait for it, and a start finds it and its pods
// again.
func TestIPv6_Pool(t *testing.T) {
	t.Parallel()
	b := ipv6Bench(t)
	first := b.add("a", time.Minute)
	b.send(first.Add)
	task, ok := lastOp(b, warmpool.PendingAssign)
	if !ok || !task.ipv6 || task.Prefixes != 1 || !Urgent(task) || len(b.ops) != 1 {
		t.Fatalf("%+v, %d operations", task, len(b.ops))
	}
	b.send(AssignDone{ID: task.ID, CIDRs: []netip.Prefix{block}})
	b.write(nil)
	r := first.got(t)
	if !r.Success || r.Allocations[0].IPv6 == "" || r.Allocations[0].IPv4 != "" || !block.Contains(netip.MustParseAddr(r.Allocations[0].IPv6)) ||
		!slices.Equal(r.VPCv6CIDRs, []string{"fd00::/56"}) || len(r.VPCv4CIDRs) > 0 {
		t.Fatalf("%+v", r)
	}
	if len(b.ops) != 0 || len(operations(b, warmpool.PendingRelease)) != 0 {
		t.Errorf("operations after the /80 is there: %v", b.ops)
	}
	if s := b.subnets.all[0]; s.AvailableIPs != 1000 {
		t.Errorf("a /80 took %d of the subnet's IPv4 addresses", 1000-s.AvailableIPs)
	}
	var img Image
	for i := range 100 {
		a := b.add(fmt.Sprint("more-", i), 0)
		b.send(a.Add)
		img = b.write(nil)
		if !a.got(t).Success {
			t.Fatal("a /80 has no address left")
		}
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	entries, err := checkpoint.Decode(img.Files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	again := ipv6Bench(t)
	again.apply(b.clock, ipam.AddCIDRs{ID: "eni-primary", CIDRs: []netip.Prefix{block}})
	if _, err := again.Restore(b.clock, Start{Entries: entries, Links: []string{"lo"}}); err != nil {
		t.Fatal(err)
	}
	same := func(x, y ipam.Assignment) bool {
		at := x.AssignedAt.Equal(y.AssignedAt)
		x.AssignedAt = y.AssignedAt // another time zone
		return at && x == y
	}
	if got, want := again.Assignments(), b.Assignments(); !slices.EqualFunc(got, want, same) {
		t.Errorf("a start made %v of %v", got, want)
	}
	d := del("a")
	b.send(d.Del)
	b.write(nil)
	if got := d.got(t); !got.Success || got.Allocations[0].IPv6 != r.Allocations[0].IPv6 {
		t.Errorf("DEL: %+v", got)
	}
}

// TestIPv6_Doubt: a free /80 missing from the metadata is not used until EC2's next answer;
// one with pods stays in use, and IPv4 lists do not affect it.
func TestIPv6_Doubt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		shown  resync.Interface
		doubts bool
	}{
		{"shown", resync.Interface{ENI: "eni-primary", IPv6Prefixes: []netip.Prefix{block}}, false},
		{"not shown", resync.Interface{ENI: "eni-primary"}, true},
		{"another is", resync.Interface{ENI: "eni-primary", IPv6Prefixes: []netip.Prefix{netip.MustParsePrefix("fd00:0:0:0:2::/80")}}, true},
		{"not read", resync.Interface{ENI: "eni-primary", Unread: resync.PartIPv6Prefixes}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := ipv6Bench(t)
			b.apply(b.clock, ipam.AddCIDRs{ID: "eni-primary", CIDRs: []netip.Prefix{block}})
			if _, err := b.Restore(b.clock, Start{Restart: true, Interfaces: []resync.Interface{row.shown}}); err != nil {
				t.Fatal(err)
			}
			e, _ := b.eni("eni-primary")
			if e.CIDRs[0].Quarantined() != row.doubts {
				t.Errorf("doubted: %v", e.CIDRs[0].Quarantined())
			}
		})
	}
}

// TestDetach_GivesBackWhatEC2Counts: a /80 takes none of the subnet's IPv4 addresses.
func TestDetach_GivesBackWhatEC2Counts(t *testing.T) {
	t.Parallel()
	b := ipv6Bench(t)
	b.apply(b.clock, ipam.AttachENI{CIDRs: []netip.Prefix{block}, ENI: ipam.ENI{
		ID: "eni-2", Device: 1, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("fd00::/64"), PrimaryIP: netip.MustParseAddr("fd00::5"), RouteTable: 2,
	}})
	b.startDetach(warmpool.DetachENI{ENI: "eni-2"}, b.clock)
	b.send(DetachDone{ID: b.lastOp})
	if got := b.subnets.all[0].AvailableIPs; got != 1001 {
		t.Errorf("%d addresses are free after an ENI went, want 1001", got)
	}
}
