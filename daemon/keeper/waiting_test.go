package keeper

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// TestKeeper_FailureBeforeTheADD: an ADD that fails while the next attempt is in flight gets
// the cause of the last failure, unless an attempt has succeeded since or the failure is
// old.
func TestKeeper_FailureBeforeTheADD(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		between time.Duration
		given   int // added by a later attempt
		want    cause.Code
	}{
		"a moment ago":          {10 * time.Second, 0, cause.EC2Throttled},
		"succeeded since":       {10 * time.Second, 1, cause.PoolDry},
		"longer than it counts": {failureHolds, 0, cause.PoolDry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.limits.ENIsByCard = []int{1}
			b.Step(b.clock)
			b.send(AssignDone{ID: b.only().ID, Err: failed(cause.EC2Throttled)})
			b.pass(row.between) // another attempt starts
			if row.given > 0 {
				b.send(AssignDone{ID: b.only().ID, CIDRs: secondary(row.given)})
				b.placed("first")
			}
			r := b.add("a", time.Second)
			b.send(r.Add)
			r.unanswered(t, "ADD while the pool grows")
			b.pass(time.Second)
			if reply := r.got(t); reply.Success || reply.Cause != string(row.want) {
				t.Errorf("%+v, want the cause %s", reply, row.want)
			}
		})
	}
}

// TestKeeper_WakesForAFullSubnet: an ADD that waits for a full subnet does not wait for the
// fallback tick once the count may be out of date.
func TestKeeper_WakesForAFullSubnet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(0)
	r := b.add("a", time.Minute)
	b.send(r.Add)
	r.unanswered(t, "ADD in a full subnet")
	low := b.subnets.low.Until
	if wake := b.NextWake(b.clock); wake.After(low) || !low.After(b.clock) {
		t.Fatalf("sleeps %v, the count is believed for %v", wake.Sub(b.clock), low.Sub(b.clock))
	}
	b.pass(low.Sub(b.clock))
	if !b.subnets.refreshing || len(b.ops) > 0 {
		t.Errorf("the subnet is not read again when its count may be doubted, but %d operations begin", len(b.ops))
	}
}

// TestKeeper_ReportsAFullSubnet: if the list shows a full subnet, no EC2 call fails, so the
// list reports it while the next ADD would get no address.
func TestKeeper_ReportsAFullSubnet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(1)
	b.describe(0)
	if n := recorded[SubnetFull](b); n != 0 {
		t.Errorf("%d reports while an address is free", n)
	}
	b.placed("a")
	for want := 1; want <= 2; want++ {
		b.describe(0)
		if n := recorded[SubnetFull](b); n != want || len(b.ops) > 0 {
			t.Fatalf("%d reports, want %d; %d operations", n, want, len(b.ops))
		}
	}
	b.describe(100)
	if n := recorded[SubnetFull](b); n != 2 {
		t.Errorf("%d reports though the subnet has addresses", n)
	}
}

// TestKeeper_AsksForWhatTheSubnetHas: the targets need more than the subnet has. A low and
// old count is first read again, and no more than that is requested.
func TestKeeper_AsksForWhatTheSubnetHas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(3)
	b.Step(b.clock)
	if op := b.only(); op.IPs != 3 {
		t.Fatalf("asks for %d, the subnet has 3", op.IPs)
	}
	// Others were faster: EC2 assigned fewer.
	b.send(AssignDone{ID: b.only().ID, CIDRs: secondary(1)})
	if len(b.ops) > 0 || !b.subnets.refreshing {
		t.Fatalf("%d operations, and the subnet is not read again", len(b.ops))
	}
	b.describe(0)
	b.Step(b.clock)
	if len(b.ops) > 0 {
		t.Fatal("the empty subnet is asked")
	}
	for end := b.clock.Add(5 * time.Minute); len(b.ops) == 0 && b.clock.Before(end); b.pass(time.Second) {
		if b.subnets.refreshing {
			b.describe(2) // by now
			b.Step(b.clock)
		}
	}
	if op := b.only(); op.IPs != 2 {
		t.Errorf("asks for %d, the subnet has 2", op.IPs)
	}
}

// TestKeeper_GrowsForADDsThatMayNotWait: with CNI_ADD_WAIT=0 no ADD waits. While EC2
// throttles, the pool grows only for pods, so it must count those whose ADD has just failed.
func TestKeeper_GrowsForADDsThatMayNotWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(1000)
	b.send(Throttled{})
	for _, name := range []string{"a", "b", "a"} {
		r := b.add(name, 0)
		b.send(r.Add)
		if r.got(t).Success {
			t.Fatal("an empty pool gave an address")
		}
	}
	if n := b.snapshot(b.clock).Waiting[0]; n != 2 {
		t.Errorf("%d pods are seen, want 2", n)
	}
	op := b.only()
	b.send(AssignDone{ID: op.ID, CIDRs: secondary(op.IPs)})
	r := b.add("a", 0)
	b.send(r.Add)
	b.write(nil)
	if !r.got(t).Success {
		t.Errorf("%+v", r.reply)
	}
	if n := b.snapshot(b.clock).Waiting[0]; n != 1 {
		t.Errorf("%d pods are seen after one was served, want 1", n)
	}
	b.send(PodsBound{Pods: []ipam.Pod{{Namespace: "shop", Name: "c"}}})
	if n := b.snapshot(b.clock).Waiting[0]; n != 0 {
		t.Errorf("%d pods are seen, and the API server shows neither of them", n)
	}
	b.send(PodsUnseen{})
	b.pass(missedHolds)
	if n := b.snapshot(b.clock).Waiting[0]; n != 0 {
		t.Errorf("%d pods are seen long after their last ADD", n)
	}
}

// TestKeeper_FailsAsTheCountIsDoubted: an ADD that times out just as the daemon starts to
// query a full subnet again names the subnet.
func TestKeeper_FailsAsTheCountIsDoubted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.describe(0)
	low := b.subnets.low.Until.Sub(b.clock)
	first, second := b.add("as it begins", low), b.add("while it asks", low+time.Millisecond)
	b.send(first.Add)
	b.send(second.Add)
	b.pass(low)
	b.pass(time.Millisecond)
	for _, r := range []*asked{first, second} {
		if reply := r.got(t); reply.Success || reply.Cause != string(cause.SubnetExhausted) || !reply.Transient {
			t.Errorf("%+v", reply)
		}
	}
}
