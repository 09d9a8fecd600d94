package keeper

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

func trunkBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.settings.Trunk = true
	b.policy.WarmENI = 0
	b.give(2)
	b.Step(b.clock)
	return b
}

func trunkENI(trunk bool) ipam.AttachENI {
	return ipam.AttachENI{ENI: ipam.ENI{ID: "eni-trunk", Device: 2, Trunk: trunk, PrimaryIP: netip.MustParseAddr("10.0.0.20"), RouteTable: 3}}
}

// TestTrunk_Slot: pods leave a trunk's slot free until the trunk exists or is given up, and
// requests for a trunk report whether it exists.
func TestTrunk_Slot(t *testing.T) {
	t.Parallel()
	second := ipam.AttachENI{ENI: ipam.ENI{ID: "eni-2", Device: 1, PrimaryIP: netip.MustParseAddr("10.0.0.21"), RouteTable: 2}}
	for _, row := range []struct {
		name         string
		before       func(b *bench)
		wanted, slot bool
		attaches     int // for more pods than fit on two ENIs
	}{
		{"free", func(*bench) {}, true, true, 1},
		{"pod ENIs are off", func(b *bench) { b.settings.Trunk = false }, false, false, 2},
		{"attached", func(b *bench) { b.apply(b.clock, trunkENI(true)) }, true, true, 1},
		{"another ENI has it", func(b *bench) { b.apply(b.clock, second); b.apply(b.clock, trunkENI(false)) }, true, false, 0},
		{"one is being attached to it", func(b *bench) {
			b.apply(b.clock, second)
			b.start(Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAttach, Device: 2}}, b.clock)
		}, true, false, 0},
		{"MAX_ENI leaves none", func(b *bench) { b.policy.MaxENI = 1 }, true, false, 0},
		{"of a card that is not the first", func(b *bench) {
			e := trunkENI(false)
			e.ENI.Card = 1
			b.apply(b.clock, second)
			b.apply(b.clock, e)
		}, true, true, 0},
		{"given up", func(b *bench) { b.pass(trunkPatience) }, true, true, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := trunkBench(t)
			b.policy.MaxPods = 0
			row.before(b)
			if wanted, slot := b.TrunkWanted(); wanted != row.wanted || slot != row.slot {
				t.Errorf("wanted %v, slot %v; want %v, %v", wanted, slot, row.wanted, row.slot)
			}
			s := b.snapshot(b.clock)
			s.Waiting[0] = 60
			attaches := 0
			for _, a := range warmpool.Plan(s, b.effective(b.clock), b.clock) {
				if _, ok := a.(warmpool.AttachENI); ok {
					attaches++
				}
			}
			if attaches != row.attaches {
				t.Errorf("%d ENIs for pods, want %d", attaches, row.attaches)
			}
		})
	}
}

// TestTrunk_FoundAndLost records each once, and waits for a lost trunk to return.
func TestTrunk_FoundAndLost(t *testing.T) {
	t.Parallel()
	b := trunkBench(t)
	b.pass(trunkFastPoll)
	for round := 1; round <= 2; round++ {
		b.apply(b.clock, trunkENI(true))
		b.pass(time.Second)
		b.send(TrunkHinted{Attached: true}) // nothing new
		if e, there := b.Trunk(); !there || e.ID != "eni-trunk" || recorded[TrunkFound](b) != round || b.awaitsTrunk(b.clock) {
			t.Fatalf("round %d: found %d times, awaited %v", round, recorded[TrunkFound](b), b.awaitsTrunk(b.clock))
		}
		b.apply(b.clock, ipam.QuarantineENI{ID: "eni-trunk"})
		b.pass(time.Second)
		if _, there := b.Trunk(); there || recorded[TrunkLost](b) != round || !b.awaitsTrunk(b.clock) {
			t.Fatalf("round %d: lost %d times, awaited %v", round, recorded[TrunkLost](b), b.awaitsTrunk(b.clock))
		}
		b.apply(b.clock, ipam.DetachENI{ID: "eni-trunk"})
	}
	if n := recorded[TrunkGivenUp](b); n != 0 {
		t.Errorf("given up %d times", n)
	}
}

// ec2Looks moves the clock and returns the times of EC2 queries. EC2 shows nothing.
func (b *bench) ec2Looks(d time.Duration) (at []time.Duration) {
	for began := b.clock; b.clock.Sub(began) < d; b.pass(500 * time.Millisecond) {
		if !b.recon.observing {
			continue
		}
		if b.recon.withEC2 {
			at = append(at, b.clock.Sub(began))
		}
		b.Handle(b.clock, Observed{Links: []string{"lo"}})
	}
	return at
}

// TestTrunk_HintAsksEC2: a new hint causes an EC2 query soon, even right after the last one;
// repetitions of the hint do not.
func TestTrunk_HintAsksEC2(t *testing.T) {
	t.Parallel()
	b := trunkBench(t)
	if at := b.ec2Looks(time.Second); len(at) != 0 {
		t.Fatalf("asked at %v without a reason", at)
	}
	b.send(NodeRead{BranchENIs: 9})
	if at := b.ec2Looks(20 * time.Second); len(at) != 1 || at[0] > trunkPoll {
		t.Errorf("asked at %v, want once within %v", at, trunkPoll)
	}
	for range 20 {
		b.send(NodeRead{BranchENIs: 9})
		if at := b.ec2Looks(10 * time.Second); len(at) != 0 {
			t.Fatalf("asked again at %v", at)
		}
	}
	b.pass(trunkPatience)
	if b.reservesTrunkSlot() {
		t.Error("the same word keeps the slot for ever")
	}
}
