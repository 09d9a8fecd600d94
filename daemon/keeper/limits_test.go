package keeper

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// boundBench is a node whose type takes four ENIs, and whose pool wants them all.
func boundBench(t *testing.T) *bench {
	b := newBench(t)
	b.policy.WarmENI, b.policy.MaxPods = 4, 0
	b.limits = warmpool.Limits{IPv4PerENI: 10, ENIsByCard: []int{4}}
	b.give(9)
	return b
}

// refuseAttach answers the attach in flight as an instance does that takes no more ENIs.
func (b *bench) refuseAttach() {
	b.t.Helper()
	b.send(AttachDone{ID: b.only().ID, ENI: ipam.ENI{ID: "eni-refused"}, Err: failed(cause.ENIAttachLimit)})
}

// accept answers the attach in flight with an ENI.
func (b *bench) accept(op *Operation) {
	b.t.Helper()
	b.send(AttachAccepted{ID: op.ID})
	n := op.Device
	var cidrs []netip.Prefix
	for i := range op.IPs {
		cidrs = append(cidrs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(16 + n), byte(i + 1)}), 32))
	}
	b.send(AttachDone{ID: op.ID, Attached: true, CIDRs: cidrs, ENI: ipam.ENI{
		ID: ipam.ENIID(fmt.Sprintf("eni-%d", n)), MAC: fmt.Sprintf("02:00:00:00:00:%02x", n), Device: n, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"),
		PrimaryIP: netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + n)}), RouteTable: n + 1,
	}})
}

// attachesIn lets time pass in the daemon's steps, and counts the attaches that were begun.
func (b *bench) attachesIn(d time.Duration) int {
	before := len(operations(b, warmpool.PendingAttach))
	for end := b.clock.Add(d); b.clock.Before(end); {
		b.pass(idleWake)
		if b.subnets.refreshing {
			b.describe(1000)
			b.pass(0)
		}
	}
	return len(operations(b, warmpool.PendingAttach)) - before
}

// TestLimits_AttachRefused: EC2 takes two ENIs, and the type should take four. The pool goes by
// two, tries one more after an hour, and uses what it gets.
func TestLimits_AttachRefused(t *testing.T) {
	t.Parallel()
	b := boundBench(t)
	b.policy.WarmENI = 2
	b.send(NodeRead{})
	b.accept(b.only())
	b.policy.WarmENI = 4
	b.pass(0)
	for _, op := range b.inFlight() { // two at once
		b.send(AttachDone{ID: op.ID, ENI: ipam.ENI{ID: "eni-refused"}, Err: failed(cause.ENIAttachLimit)})
	}
	st := b.State(b.clock)
	if got := st.Stated.Card(0); got.Most != 2 || got.OfType != 4 || st.Limits.ENIsByCard[0] != 2 || !got.Retry.Equal(b.clock.Add(time.Hour)) {
		t.Fatalf("stated %+v, limits %+v", got, st.Limits)
	}
	if len(st.Backoffs) > 0 {
		t.Errorf("back-offs besides: %+v", st.Backoffs)
	}
	if s, _ := b.Pool(b.clock); s.Limits.ENIsByCard[0] != 2 || !s.Stated.Any() {
		t.Errorf("the planner sees %+v", s.Limits)
	}
	if n := b.attachesIn(time.Hour - idleWake); n != 0 {
		t.Fatalf("%d attaches in an hour", n)
	}
	if n := b.attachesIn(idleWake); n != 1 {
		t.Fatalf("%d attaches after an hour, want one", n)
	}
	b.refuseAttach()
	if n := b.attachesIn(time.Hour - idleWake); n != 0 {
		t.Fatalf("%d attaches in the second hour", n)
	}
	if n := b.attachesIn(idleWake); n != 1 {
		t.Fatalf("%d attaches after the second hour", n)
	}
	b.accept(b.only())
	if st := b.State(b.clock); st.Stated.Any() || st.Limits.ENIsByCard[0] != 4 {
		t.Errorf("after EC2 took a third: %+v", st.Stated)
	}
	b.pass(0)
	if op, _ := lastOp(b, warmpool.PendingAttach); len(b.ops) != 1 || op.Device != 3 {
		t.Errorf("the fourth is not attached: %+v", b.ops)
	}
	if n := recorded[LimitChanged](b); n < 2 {
		t.Errorf("%d events", n)
	}
}

// TestLimits_WhatProvesNothing: refusals that do not lower the limit lead to a back-off.
func TestLimits_WhatProvesNothing(t *testing.T) {
	t.Parallel()
	second := ipam.AttachENI{ENI: ipam.ENI{
		ID: "eni-9", MAC: "02:00:00:00:00:09", Device: 3, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/20"), PrimaryIP: netip.MustParseAddr("10.0.0.9"), RouteTable: 4,
	}}
	for _, row := range []struct {
		name   string
		before func(*bench)
		err    error
		most   int // 0 if no limit is stated
	}{
		{"the account's quota", func(*bench) {}, fmt.Errorf("%w in subnet: %w", ErrCreate, failed(cause.ENIAttachLimit)), 0},
		{"another error", func(*bench) {}, failed(cause.EC2Error), 0},
		{"an ENI was just detached", func(b *bench) { b.detached[0] = b.clock.Add(-time.Second) }, failed(cause.ENIAttachLimit), 0},
		{"one was detached long ago", func(b *bench) { b.detached[0] = b.clock.Add(-detachRest) }, failed(cause.ENIAttachLimit), 1},
		{"one was detached from another card", func(b *bench) { b.detached[1] = b.clock }, failed(cause.ENIAttachLimit), 1},
		{"ENIs of others count", func(b *bench) { b.recon.others = []resync.Other{{ID: "eni-other", Device: 2}} }, failed(cause.ENIAttachLimit), 2},
		{"the book is full", func(b *bench) {
			b.recon.others = []resync.Other{{ID: "eni-a", Device: 1}, {ID: "eni-b", Device: 2}}
			b.apply(b.clock, second)
		}, failed(cause.ENIAttachLimit), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := boundBench(t)
			b.policy.WarmENI = 2
			b.send(NodeRead{})
			op := b.only()
			row.before(b)
			b.send(AttachDone{ID: op.ID, Err: row.err})
			st := b.State(b.clock)
			if got := st.Stated.Card(0); got.Most != row.most || got.There() != (row.most > 0) {
				t.Errorf("stated %+v, want %d", got, row.most)
			}
			if (len(st.Backoffs) == 0) != (row.most > 0) {
				t.Errorf("back-offs: %+v", st.Backoffs)
			}
		})
	}
}

// TestLimits_ForeignENISeenLater: an ENI that something else attached made EC2 refuse one. As
// soon as it is seen the limit is that of the type again.
func TestLimits_ForeignENISeenLater(t *testing.T) {
	t.Parallel()
	b := boundBench(t)
	b.limits.ENIsByCard = []int{2}
	b.send(NodeRead{})
	b.refuseAttach()
	if st := b.State(b.clock); st.Stated.Card(0).Most != 1 {
		t.Fatalf("stated %+v", st.Stated)
	}
	if !b.recon.needEC2 {
		t.Error("EC2 is not read")
	}
	b.recon.others = []resync.Other{{ID: "eni-other", Device: 1}}
	b.pass(0)
	if st := b.State(b.clock); st.Stated.Any() || st.Limits.ENIsByCard[0] != 2 {
		t.Errorf("two are attached: %+v", st.Stated)
	}
}

// TestLimits_AddressesRefused: EC2 puts fewer addresses on an ENI than the type should take.
func TestLimits_AddressesRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI, b.policy.WarmIP = 0, 9
	b.limits.ENIsByCard = []int{1}
	b.send(NodeRead{})
	b.send(AssignDone{ID: b.only().ID, CIDRs: secondary(5), Refused: 6})
	st := b.State(b.clock)
	if got := st.Stated.Slots; got.Most != 5 || got.OfType != 9 || st.Limits.Slots() != 5 || len(b.ops) != 0 || len(st.Backoffs) > 0 {
		t.Fatalf("stated %+v, limits %+v, in flight %v, back-offs %+v", got, st.Limits, b.ops, st.Backoffs)
	}
	assigns := func() int { return len(operations(b, warmpool.PendingAssign)) }
	before := assigns()
	b.attachesIn(time.Hour - idleWake)
	if n := assigns() - before; n != 0 {
		t.Fatalf("%d requests in an hour", n)
	}
	b.attachesIn(idleWake)
	if op := b.only(); op.IPs != 1 {
		t.Fatalf("asks for %d after an hour, want one", op.IPs)
	}
	b.send(AssignDone{ID: b.only().ID, All: true, CIDRs: secondary(5), Full: true, Refused: 6})
	if st := b.State(b.clock); !st.Stated.Slots.Retry.Equal(b.clock.Add(time.Hour)) || len(b.ops) != 0 {
		t.Fatalf("after the second refusal: %+v, %v", st.Stated, b.ops)
	}
	b.attachesIn(time.Hour)
	b.send(AssignDone{ID: b.only().ID, CIDRs: secondary(6)[5:]})
	if st := b.State(b.clock); st.Stated.Any() || b.only().IPs != 3 {
		t.Errorf("after EC2 gave a sixth: %+v", st.Stated)
	}
}

// TestLimits_OneENIRefused: another ENI holds more, or not even one address was accepted.
func TestLimits_OneENIRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI, b.policy.WarmIP = 0, 9
	b.limits.ENIsByCard = []int{1}
	b.send(NodeRead{})
	b.send(AssignDone{ID: b.only().ID, All: true, Full: true, Refused: 1})
	if st := b.State(b.clock); st.Stated.Any() || len(st.Backoffs) != 1 {
		t.Errorf("stated %+v, back-offs %+v", st.Stated, st.Backoffs)
	}
}

// TestProcedures_FewerSlotsThanTheType: EC2's ENIs take fewer secondary IPs than their type
// should. It checks an ENI that is not attached at the latest when it is attached.
func TestProcedures_FewerSlotsThanTheType(t *testing.T) {
	t.Parallel()
	for slots := range 10 {
		m := newModel(t)
		m.slots = slots
		if slots == 0 {
			m.slots = -1 // none
		}
		m.enis["eni-1"] = &resync.ENI{ID: "eni-1", Status: "in-use"}
		op := assignOp("eni-1", 9)
		op.slots = 9
		held, calls := 0, 0
		for most := 9; held < most && calls < 10; calls++ { // as the planner does
			op.IPs = most - held
			res := assignAddresses(t.Context(), m, op)
			if res.Err != nil {
				t.Fatalf("%d slots: %v", slots, res.Err)
			}
			if res.Refused > 0 {
				most = min(most, res.Refused-1)
			}
			held = len(m.enis["eni-1"].CIDRs())
			if most < slots {
				t.Fatalf("%d slots: %d are believed", slots, most)
			}
		}
		if held != slots {
			t.Errorf("%d slots: %d were filled in %d requests", slots, held, calls)
		}
		if n := m.count("assign"); n > 12 {
			t.Errorf("%d slots: %d calls", slots, n)
		}
		for _, early := range []bool{false, true} {
			attachWithSlots(t, slots, early)
		}
	}
}

// attachWithSlots attaches an ENI with 9 addresses, whose type takes fewer.
func attachWithSlots(t *testing.T, slots int, early bool) {
	t.Helper()
	m := newModel(t)
	m.early = early
	if m.slots = slots; slots == 0 {
		m.slots = -1
	}
	op := attachOp
	op.create.IPs = 9
	res := attachENI(t.Context(), m, op)
	if slots == 0 {
		if !IsAddressLimit(res.Err) {
			t.Errorf("no slots: %+v", res)
		}
		return
	}
	held := len(m.enis[res.ENI.ID].CIDRs())
	if res.Err != nil || !res.Attached || held == 0 || held > slots || len(res.CIDRs) != held {
		t.Errorf("%d slots, checked early %v: %d held, %+v", slots, early, held, res)
	}
	if wrong := res.Refused > 0 != (slots < 9) || res.Refused > 0 && res.Refused <= slots; wrong {
		t.Errorf("%d slots, checked early %v: refused %d", slots, early, res.Refused)
	}
}
