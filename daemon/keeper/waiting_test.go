package keeper

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/procedure"
)

// TestKeeper_FailureBeforeTheADD: an ADD that goes without while the next attempt is
// under way is told why the last one failed, unless one has succeeded since or it is
// long ago.
func TestKeeper_FailureBeforeTheADD(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		between time.Duration
		given   int // addresses of a later attempt
		want    cause.Code
	}{
		"a moment ago":          {10 * time.Second, 0, cause.EC2Throttled},
		"mended since":          {10 * time.Second, 1, cause.PoolDry},
		"longer than it counts": {failureHolds, 0, cause.PoolDry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.limits.ENIsByCard = []int{1}
			b.Step(b.clock)
			b.tell(AssignDone{ID: b.only().ID, Result: procedure.AssignResult{Err: failed(cause.EC2Throttled)}})
			b.pass(row.between) // another attempt is begun
			if row.given > 0 {
				b.tell(AssignDone{ID: b.only().ID, Result: procedure.AssignResult{CIDRs: secondary(row.given)}})
				b.tell(b.add("first", 0).Add)
				b.write(nil)
			}
			r := b.add("a", time.Second)
			b.tell(r.Add)
			r.unanswered(t, "ADD while the pool grows")
			b.pass(time.Second)
			if reply := r.got(t); reply.Success || reply.Cause != string(row.want) {
				t.Errorf("%+v, want the cause %s", reply, row.want)
			}
		})
	}
}

// TestKeeper_WakesForAFullSubnet: an ADD that waits for a subnet without addresses does
// not wait for the fallback tick once its count may be doubted.
func TestKeeper_WakesForAFullSubnet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(0)
	r := b.add("a", time.Minute)
	b.tell(r.Add)
	r.unanswered(t, "ADD in a full subnet")
	low := b.subnets.low.Until
	if wake := b.NextWake(b.clock); wake.After(low) || !low.After(b.clock) {
		t.Fatalf("sleeps %v, the count is believed for %v", wake.Sub(b.clock), low.Sub(b.clock))
	}
	b.pass(low.Sub(b.clock))
	if len(b.ops) == 0 {
		t.Error("no attempt when the count may be doubted")
	}
}

// TestKeeper_FailsAsTheCountIsDoubted: an ADD whose time is up at the moment in which the
// daemon begins to ask a full subnet again is told of the subnet.
func TestKeeper_FailsAsTheCountIsDoubted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(0)
	low := b.subnets.low.Until.Sub(b.clock)
	first, second := b.add("as it begins", low), b.add("while it asks", low+time.Millisecond)
	b.tell(first.Add)
	b.tell(second.Add)
	b.pass(low)
	b.pass(time.Millisecond)
	for _, r := range []*asked{first, second} {
		if reply := r.got(t); reply.Success || reply.Cause != string(cause.SubnetExhausted) || !reply.Transient {
			t.Errorf("%+v", reply)
		}
	}
}
