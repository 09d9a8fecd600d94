package keeper

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manualBench is a bench with addresses whose passes over connection tracking the test ends.
func manualBench(t *testing.T, addresses int) *bench {
	t.Helper()
	b := newBench(t)
	b.manual = true
	b.give(addresses)
	return b
}

// ending gives the pods addresses, on disk, and ends them.
func (b *bench) ending(names ...string) {
	b.t.Helper()
	b.placed(names...)
	for _, name := range names {
		b.send(del(name).Del)
		b.write(nil)
	}
}

// untilFree returns how long after now an ADD gets an address.
func (b *bench) untilFree() time.Duration {
	b.t.Helper()
	begun := b.clock
	a := b.add("next", time.Hour)
	b.send(a.Add)
	for b.clock.Sub(begun) < 10*time.Minute {
		if len(b.disk) > 0 {
			b.write(nil)
		}
		if a.reply != nil && a.reply.Success {
			return b.clock.Sub(begun)
		}
		b.clock = b.NextWake(b.clock)
		b.step()
	}
	b.t.Fatal("no address in 10 minutes")
	return 0
}

// TestFlows_TwoPassesBeforeReuse: neither the cooldown nor one pass makes an address free.
func TestFlows_TwoPassesBeforeReuse(t *testing.T) {
	t.Parallel()
	b := manualBench(t, 1)
	b.ending("last")
	if len(b.flows) != 1 {
		t.Fatalf("%d passes at the end of a pod, want 1", len(b.flows))
	}
	next := b.add("next", time.Hour)
	b.send(next.Add)
	b.pass(31 * time.Second)
	next.unanswered(t, "ADD before the first pass is done")
	b.endFlows(nil)
	b.pass(flowsEvery * 8)
	next.unanswered(t, "ADD before the second pass is done")
	b.endFlows(nil)
	b.write(nil)
	if r := next.got(t); !r.Success {
		t.Errorf("ADD after both passes: %+v", r)
	}
}

// TestFlows_Pace: passes never overlap, and the next begins at least a second after the last,
// and later the longer that one took. One pass serves all due addresses.
func TestFlows_Pace(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: time.Second, 10 * time.Millisecond: time.Second, 100 * time.Millisecond: 2 * time.Second, 3 * time.Second: 7500 * time.Millisecond,
	} {
		b := manualBench(t, 9)
		b.ending("a")
		if len(b.flows) != 1 {
			t.Fatalf("%d passes, want 1", len(b.flows))
		}
		b.ending("b", "c", "d") // while it runs
		b.pass(took)
		b.endFlows(nil)
		ended := b.clock
		for len(b.flows) == 0 {
			b.clock = b.NextWake(b.clock)
			b.Step(b.clock)
			b.ending("e")
		}
		if got := b.clock.Sub(ended); got < want || got > want+time.Millisecond {
			t.Errorf("pass that took %v: the next began %v after its end, want %v", took, got, want)
		}
		if got := len(b.flows[0].Addresses); got < 3 {
			t.Errorf("the next pass is for %d addresses, want all that ended meanwhile", got)
		}
	}
}

// TestFlows_Failing: without connection tracking's netlink, addresses are free after their
// cooldown as before, and this is said once.
func TestFlows_Failing(t *testing.T) {
	t.Parallel()
	b := manualBench(t, 1)
	for range 3 {
		b.ending("last")
		ended := b.clock
		a := b.add("next", time.Hour)
		b.send(a.Add)
		for a.reply == nil {
			if len(b.flows) > 0 {
				b.endFlows(unix.EPERM)
			}
			if len(b.disk) > 0 {
				b.write(nil)
				continue
			}
			b.clock = b.NextWake(b.clock)
			b.Step(b.clock)
		}
		if got := b.clock.Sub(ended); !a.reply.Success || got < b.policy.Cooldown || got > b.policy.Cooldown+time.Second {
			t.Fatalf("%+v after %v, want the address after the cooldown", a.reply, got)
		}
		b.send(del("next").Del)
		b.write(nil)
		for range 300 {
			if len(b.flows) > 0 {
				b.endFlows(unix.EPERM)
			}
			b.pass(time.Second / 4)
		}
	}
	said := 0
	for _, e := range b.events {
		if e, ok := e.(FlowsKept); ok && !e.Again {
			said++
		}
	}
	if said != 1 || recorded[FlowsKept](b) < 6 {
		t.Errorf("said %d times in %d failed passes, want once", said, recorded[FlowsKept](b))
	}
	b.ending("last")
	b.endFlows(nil)
	b.pass(28 * time.Second)
	b.endFlows(unix.EPERM)
	if last, ok := b.events[len(b.events)-1].(FlowsKept); !ok || last.Again {
		t.Errorf("a failure after a pass that worked: %+v", b.events[len(b.events)-1])
	}
}

// TestFlows_FailedPassIsRepeated: one failure does not let connections through.
func TestFlows_FailedPassIsRepeated(t *testing.T) {
	t.Parallel()
	b := manualBench(t, 1)
	b.ending("last")
	b.endFlows(nil)
	b.pass(28 * time.Second)
	b.endFlows(errors.New("a moment's trouble"))
	b.pass(time.Second)
	if len(b.flows) != 1 {
		t.Errorf("%d passes after the failed one, want another", len(b.flows))
	}
}

// TestFlows_UnsettledDEL: a DEL that is not on disk may be reverted, so its pod's connections
// stay.
func TestFlows_UnsettledDEL(t *testing.T) {
	t.Parallel()
	b := manualBench(t, 2)
	b.placed("a")
	d := del("a")
	b.send(d.Del)
	b.pass(time.Second)
	if len(b.flows) != 0 {
		t.Fatalf("pass %v before the DEL is on disk", b.flows)
	}
	b.write(errors.New("disk full"))
	b.pass(time.Minute)
	if len(b.flows) != 0 || d.got(t).Success {
		t.Errorf("pass %v after a reverted DEL, %+v", b.flows, d.reply)
	}
}

// TestFlows_SlowCommit: the cooldown of an address whose DEL took long to write starts over, and so do
// its passes.
func TestFlows_SlowCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(1)
	b.placed("a")
	b.send(del("a").Del)
	b.pass(2 * time.Second)
	b.write(nil)
	if got := b.untilFree(); got < b.policy.Cooldown || got > b.policy.Cooldown+time.Second {
		t.Errorf("free %v after the answer, want the cooldown", got)
	}
}

// TestFlows_Terminating: no pass begins when the daemon ends, and one that the end cuts short
// is no failure.
func TestFlows_Terminating(t *testing.T) {
	t.Parallel()
	b := manualBench(t, 2)
	b.ending("a")
	b.send(Terminate{})
	b.endFlows(context.Canceled)
	b.pass(time.Minute)
	if len(b.flows) != 0 || recorded[FlowsKept](b) != 0 {
		t.Errorf("%d passes, %d failures", len(b.flows), recorded[FlowsKept](b))
	}
}

// TestFlowsTask: a pass is for its addresses and no others.
func TestFlowsTask(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	m.flows = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("2001:db8::1")}
	due := []netip.Addr{m.flows[0], m.flows[2], netip.MustParseAddr("10.0.0.9")}
	Run(t.Context(), m, FlowsTask{due})
	if len(m.passes) != 1 {
		t.Fatalf("reported %+v", m.passes)
	}
	rest := []netip.Addr{netip.MustParseAddr("10.0.0.2")}
	if done := m.passes[0]; done.Err != nil || done.Deleted != 2 || !slices.Equal(done.Addresses, due) || !slices.Equal(m.flows, rest) {
		t.Errorf("%+v, left %v", done, m.flows)
	}
}

// TestFlows_StartIsBounded: serving does not wait for a start's pass over a huge table. What it deleted
// until then counts.
func TestFlows_StartIsBounded(t *testing.T) {
	t.Parallel()
	for perFlow, all := range map[time.Duration]bool{time.Millisecond: true, leftFlowsLimit / 100: false} {
		b := newBench(t)
		b.give(9)
		m := newModel(t)
		spare, pods := netip.MustParseAddr("10.0.1.3"), netip.MustParseAddr("10.9.9.9")
		m.flows, m.perFlow = slices.Concat(slices.Repeat([]netip.Addr{spare}, 1000), []netip.Addr{pods}), perFlow
		began := m.now
		b.deleteLeftFlows(t.Context(), m, func(netip.Addr) bool { return false })
		deleted := 1001 - len(m.flows)
		switch e := b.events[len(b.events)-1].(type) {
		case FlowsDeleted:
			if !all || e.Entries != 1000 || !slices.Equal(m.flows, []netip.Addr{pods}) {
				t.Errorf("%v each: %+v, left %d", perFlow, e, len(m.flows))
			}
		case FlowsKept:
			if all || e.Entries != deleted || deleted < 90 || deleted > 102 || !errors.Is(e.Err, context.Canceled) {
				t.Errorf("%v each: %+v, %d deleted in %v", perFlow, e, deleted, m.now.Sub(began))
			}
		default:
			t.Errorf("%v each: %+v", perFlow, e)
		}
	}
}
