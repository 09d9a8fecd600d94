package keeper

import (
	"testing"
	"time"
)

// TestTrunk_FastPollingEnds: while a trunk is awaited, metadata is read every few seconds, but not
// forever, unlike upstream on nodes that never get one; nor is its slot reserved forever.
// Repeated reports that it is attached change nothing.
func TestTrunk_FastPollingEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.settings.Trunk = true
	b.policy.WarmENI = 0
	b.give(2)
	b.pass(0)
	looks := func(d time.Duration) (n int) {
		t.Helper()
		for end := b.clock.Add(d); ; n++ {
			b.observe()
			if b.clock.After(end) {
				return n
			}
			b.seen(secondary(2), nil)
			b.send(TrunkHinted{Attached: true})
		}
	}
	b.send(TrunkHinted{})
	if n := looks(time.Minute); n < 8 {
		t.Errorf("%d looks in the first minute, want one every few seconds", n)
	}
	b.seen(secondary(2), nil)
	for b.awaitsTrunk(b.clock) {
		b.observe()
		b.seen(secondary(2), nil)
		if b.clock.Sub(b.started) > 2*trunkFastPoll {
			t.Fatal("the haste does not end")
		}
	}
	if !b.reservesTrunkSlot() {
		t.Error("the slot was given up with the haste")
	}
	if n := looks(4 * time.Minute); n > 6 {
		t.Errorf("%d looks in four minutes after it, want one a minute", n)
	}
	b.seen(secondary(2), nil)
	b.pass(trunkPatience)
	if b.reservesTrunkSlot() || recorded[TrunkGivenUp](b) != 1 {
		t.Errorf("the slot is kept: %v; recorded %d times that it is not, want once", b.reservesTrunkSlot(), recorded[TrunkGivenUp](b))
	}
	b.send(TrunkHinted{}) // the controller is asked again
	if !b.reservesTrunkSlot() {
		t.Error("no slot is kept for a trunk that was asked for again")
	}
}

// TestTrunk_Refused: the controller's refusal frees the trunk's slot at once, and ends the
// search for a trunk. Only its own report revokes that, not another request by the daemon.
func TestTrunk_Refused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.settings.Trunk = true
	b.send(TrunkRefused{Refused: true})
	b.send(TrunkRefused{Refused: true})
	b.send(TrunkHinted{})
	if b.reservesTrunkSlot() || b.awaitsTrunk(b.clock) || recorded[TrunkGivenUp](b) != 1 {
		t.Errorf("reserved %v, awaited %v, recorded %d times", b.reservesTrunkSlot(), b.awaitsTrunk(b.clock), recorded[TrunkGivenUp](b))
	}
	b.send(TrunkRefused{})
	if !b.reservesTrunkSlot() || !b.awaitsTrunk(b.clock) {
		t.Error("no slot is kept after the word was taken back")
	}
	b.send(TrunkRefused{Refused: true})
	b.send(TrunkHinted{Attached: true})
	if !b.reservesTrunkSlot() || !b.awaitsTrunk(b.clock) {
		t.Error("a trunk that is said to be attached is not looked for")
	}
}
