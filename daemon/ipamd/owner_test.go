package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
	"cnictl/testenv/rules/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }

// lonely is a daemon whose keeper has addresses and no executor.
type lonely struct {
	*daemon
	images chan keeper.Image
	begin  func(keeper.Task) // nil: no task runs
}

func (l *lonely) Begin(t keeper.Task) {
	if l.begin != nil {
		l.begin(t)
	}
}
func (l *lonely) Write(i keeper.Image)                { l.images <- i }
func (l *lonely) Record(at time.Time, e keeper.Event) { l.recorder.record(at, e) }

func newLonely(t *testing.T, change func(*node)) *lonely {
	t.Helper()
	const subnet = "subnet-0123456789abcdef0"
	instance, ok := limits.Lookup("m5.large")
	if !ok {
		t.Fatal("no limits of m5.large")
	}
	n := node{
		config: config.Config{WarmENI: 1, Cooldown: 30 * time.Second, VethPrefix: "eni"}, instance: instance,
		limits: plannerLimits(instance, false), provisioning: true, checkpointPath: "ipam.json",
		identity:     imds.Identity{SubnetID: subnet, InstanceType: "m5.large", PrimaryENI: "eni-primary"},
		subnetPolicy: resync.SubnetPolicy{NodeSubnet: subnet, Discovery: true}, started: time.Now(),
	}
	if change != nil {
		change(&n)
	}
	n.targets = newTargets(n.config, config.Facts{}, nil)
	met := metrics.New(metrics.Options{})
	l := &lonely{images: make(chan keeper.Image, 1), daemon: &daemon{
		node: n, calls: &callCounts{}, metrics: met,
		recorder: newRecorder(t.Context(), slog.New(slog.DiscardHandler), met, introspectserver.NewFeed(time.Now()), warmpool.Policy{}),
		owner:    &owner{now: time.Now, metrics: met, inbox: make(chan item, inboxSize), ended: make(chan struct{})},
	}}
	l.owner.keeper = keeper.New(keeper.Options{
		Settings: n.keeperSettings(), Limits: n.limits, Outside: l, Now: time.Now(),
		Jitter: func(d time.Duration) time.Duration { return d / 2 },
	})
	primary := ipam.ENI{
		ID: "eni-primary", Primary: true, SubnetID: subnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.MustParseAddr("10.0.0.4"), RouteTable: 254,
	}
	var cidrs []netip.Prefix
	for i := range 9 {
		cidrs = append(cidrs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)}), 32))
	}
	_, err := l.owner.keeper.Restore(time.Now(), keeper.Start{
		Usable:  []resync.Attached{{ENI: primary, CIDRs: cidrs}},
		Subnets: []resync.Subnet{{ID: subnet, CIDR: primary.Subnet, AvailableIPs: 1000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// save is a disk that is always fast, until the owner ends.
func (l *lonely) save() {
	for {
		select {
		case img := <-l.images:
			l.owner.deliver(keeper.Committed{Gen: img.Gen})
		case <-l.owner.ended:
			return
		}
	}
}

func addRequest(name string) *cniwire.AddRequest {
	return &cniwire.AddRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"}
}

// TestOwner_End stops the loop with a working and a hanging disk; requests made then do not
// hang.
func TestOwner_End(t *testing.T) {
	t.Parallel()
	for _, disk := range []string{"works", "fails", "hangs"} {
		t.Run(disk, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLonely(t, nil)
				o := l.owner
				stop := make(chan struct{})
				go o.run(stop)
				server := &backend{owner: o}
				answer := make(chan *cniwire.AddReply, 1)
				go func() { answer <- server.Add(t.Context(), addRequest("a")) }()
				synctest.Wait()
				close(stop)
				img := <-l.images
				switch disk {
				case "works":
					o.deliver(keeper.Committed{Gen: img.Gen})
				case "fails":
					o.deliver(keeper.Committed{Gen: img.Gen, Err: errors.New("disk full")})
				}
				if r := <-answer; r.Success != (disk == "works") {
					t.Errorf("ADD: %+v", r)
				}
				<-o.ended
				if r := server.Add(t.Context(), addRequest("b")); r.Cause != string(cause.DaemonTerminating) {
					t.Errorf("ADD after the end: %+v", r)
				}
				del := &cniwire.DelRequest{PodName: "a", PodNamespace: "shop", ContainerID: "a", IfName: "eth0", NetworkName: "aws-cni"}
				if r := server.Del(t.Context(), del); r.Cause != string(cause.DaemonTerminating) {
					t.Errorf("DEL after the end: %+v", r)
				}
				if v := l.View(); v.Now.IsZero() {
					t.Error("view after the end has no time")
				}
				if _, err := l.pool(t.Context()); err == nil {
					t.Error("a plan after the end")
				}
			})
		})
	}
}

// TestOwner_CallerGoesAway: an ADD's wait ends when its client disconnects.
func TestOwner_CallerGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLonely(t, nil)
		o := l.owner
		stop := make(chan struct{})
		go o.run(stop)
		go l.save()
		server := &backend{owner: o, wait: time.Minute}
		for i := range 9 { // all there are
			if r := server.Add(t.Context(), addRequest(fmt.Sprint("p", i))); !r.Success {
				t.Fatalf("ADD %d: %+v", i, r)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan *cniwire.AddReply, 1)
		go func() { answer <- server.Add(ctx, addRequest("late")) }()
		synctest.Wait()
		cancel()
		if r := <-answer; r.Success {
			t.Errorf("ADD: %+v", r)
		}
		if n, _ := ask(o, func(k *keeper.Keeper, _ time.Time) int { return k.Waiting() }); n != 0 {
			t.Errorf("%d ADDs still wait", n)
		}
		close(stop)
		<-o.ended
	})
}

// TestRecorder_CountsActions counts running and failed actions under upstream's names.
func TestRecorder_CountsActions(t *testing.T) {
	t.Parallel()
	met := metrics.New(metrics.Options{})
	r := newRecorder(t.Context(), slog.New(slog.DiscardHandler), met, introspectserver.NewFeed(time.Now()), warmpool.Policy{})
	series := func(name, fn string) (value float64) {
		families, err := met.Gatherer().Gather()
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
	op := keeper.Operation{ID: 7, Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: "eni-1"}, Reason: warmpool.WaitingPods}
	r.record(time.Now(), keeper.ActionStarted{Operation: op})
	if n := series("awscni_ipamd_action_inprogress", "increaseDatastorePool"); n != 1 {
		t.Errorf("%v actions in progress, want 1", n)
	}
	r.record(time.Now(), keeper.ActionFailed{Operation: op, Err: &keeper.Failure{Cause: cause.EC2Error, Err: errors.New("as the test asked")}})
	if n := series("awscni_ipamd_action_inprogress", "increaseDatastorePool"); n != 0 {
		t.Errorf("%v actions in progress after it, want 0", n)
	}
	if n := series("awscni_ipamd_error_count", "increaseIPPoolAllocIPAddressesFailed"); n != 1 {
		t.Errorf("%v errors, want 1", n)
	}
	if len(r.history.errors) != 1 || r.history.errors[0].Operation != "assign" {
		t.Errorf("last errors: %+v", r.history.errors)
	}
}

// TestSummary_KnownListsAreNotNull: null means unknown.
func TestSummary_KnownListsAreNotNull(t *testing.T) {
	t.Parallel()
	l := newLonely(t, nil)
	s := l.summary(l.owner.keeper.State(time.Now()), l.recorder.history)
	for name, null := range map[string]bool{
		"operations": s.Operations == nil, "backoffs": s.Backoffs == nil, "subnets": s.Subnets == nil,
		"lastErrors": s.LastErrors == nil, "ec2Calls": s.EC2Calls == nil, "cards": s.Cards == nil,
	} {
		if null {
			t.Errorf("%s is null", name)
		}
	}
}

// TestSummary_AddressLimit: MAX_ENI and foreign ENIs each reduce the limit once.
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
			l := newLonely(t, func(n *node) { n.config.MaxENI, n.prefixes = row.maxENI, row.prefixes })
			st := l.owner.keeper.State(time.Now())
			st.OtherENIs[0] = row.others
			card := l.summary(st, l.recorder.history).Cards[0]
			if *card.ENILimit != row.enis || *card.AddressLimit != row.want {
				t.Errorf("ENIs %d, addresses %d, want %d and %d", *card.ENILimit, *card.AddressLimit, row.enis, row.want)
			}
			if mode := map[bool]string{false: introspect.ModeSecondaryIP, true: introspect.ModePrefix}[row.prefixes]; card.Mode != mode {
				t.Errorf("mode %s, want %s", card.Mode, mode)
			}
		})
	}
}
