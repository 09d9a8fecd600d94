package vpcapi_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/budget"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// slow allows burst requests at once, then one per week.
func slow(burst, reserve float64) func(*vpcapi.Config) {
	const week = 7 * 24 * 3600
	return func(c *vpcapi.Config) {
		class := budget.Class{Burst: burst, PerSecond: 1.0 / week, Reserve: reserve}
		c.Budget = budget.Policy{Read: class, Write: class, Floor: 1.0 / week}
	}
}

// last returns the last observed call.
func (n *node) last() vpcapi.Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.observed) == 0 {
		n.t.Fatal("no call was observed")
	}
	return n.observed[len(n.observed)-1]
}

// stateOf returns the state of an action's budget.
func (n *node) stateOf(action string) budget.State {
	n.t.Helper()
	for _, s := range n.Budget() {
		if s.Action == action {
			return s
		}
	}
	n.t.Fatalf("%s is not in the budget: %+v", action, n.Budget())
	return budget.State{}
}

// The SDK tries AWS_MAX_ATTEMPTS times, each attempt passes through the budget, and each
// consecutive throttle shrinks it.
func TestPace_EveryAttempt(t *testing.T) {
	for mode, attempts := range map[string]int{"standard": 5, "adaptive": 2} { // adaptive mode adds slow pacing by itself
		t.Setenv("AWS_RETRY_MODE", mode)
		t.Setenv("AWS_MAX_ATTEMPTS", strconv.Itoa(attempts))
		n := newNode(t, setup{world: fakeaws.Options{Throttle: &fakeaws.Throttle{}}, conf: func(c *vpcapi.Config) { c.Budget.Floor = 100 }})
		if _, err := n.DescribeSubnets(t.Context()); !vpcapi.IsThrottled(err) || vpcapi.Code(err) != "RequestLimitExceeded" {
			t.Fatalf("%s: %v", mode, err)
		}
		if c := n.last(); c.Attempts != attempts || c.Throttled != attempts || c.Waited > c.Took || len(n.world.Calls()) != attempts {
			t.Errorf("%s: %d requests, call %+v, want %d attempts", mode, len(n.world.Calls()), c, attempts)
		}
		if s := n.stateOf("DescribeSubnets"); !s.Slowed() || s.Throttled.IsZero() {
			t.Errorf("%s: after its throttles %+v", mode, s)
		}
	}
}

// A failure other than throttling costs one request and keeps the rate.
func TestPace_OtherFailures(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{conf: slow(5, 0)})
	if err := n.DetachENI(t.Context(), "eni-attach-0fa4e00000000dead"); !vpcapi.IsNotFound(err) {
		t.Fatal(err)
	}
	if s := n.stateOf("DetachNetworkInterface"); s.Slowed() || s.Saved < 4 || s.Saved >= 4.5 {
		t.Errorf("state %+v, want 4 requests left", s)
	}
	if c := n.last(); c.Attempts != 1 || c.Throttled != 0 || c.Waited > time.Second {
		t.Errorf("call %+v", c)
	}
}

// Housekeeping leaves the reserve to calls that a pod waits for. If the caller's deadline
// comes before a request's turn, it fails at once, without a call to EC2.
func TestPace_UrgentBeforeHousekeeping(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{conf: slow(5, 2)})
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Later())
	defer cancel()
	describe := func(ctx context.Context) error { _, err := n.DescribeSubnets(ctx); return err }
	for i := range 3 {
		if err := describe(ctx); err != nil {
			t.Fatalf("housekeeping %d: %v", i+1, err)
		}
	}
	var err error
	testenv.Within(t, 30*time.Second, "the refusal", func() { err = describe(ctx) })
	var held *vpcapi.WaitError
	if !errors.As(err, &held) || held.Action != "DescribeSubnets" || held.Left < 30*time.Minute || held.Lost || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the fourth: %v", err)
	}
	if !vpcapi.IsThrottled(err) || vpcapi.Cause(err) != cause.EC2Throttled || vpcapi.IsUnanswered(err) {
		t.Errorf("throttled %v, cause %s, unanswered %v", vpcapi.IsThrottled(err), vpcapi.Cause(err), vpcapi.IsUnanswered(err))
	}
	if s := vpcapi.Brief(err).Error(); !strings.HasPrefix(s, "ec2:DescribeSubnets was held back by the local rate limit") {
		t.Errorf("in brief %q", s)
	}
	if c := n.last(); c.Attempts != 0 || c.Err == nil || c.Code != "" {
		t.Errorf("observed %+v", c)
	}
	for i := range 2 {
		if err := describe(vpcapi.Urgent(ctx)); err != nil {
			t.Errorf("urgent %d: %v", i+1, err)
		}
	}
	if err := describe(vpcapi.Urgent(ctx)); !errors.As(err, &held) {
		t.Errorf("the third urgent one: %v", err)
	}
	if got := len(n.world.Calls()); got != 5 {
		t.Errorf("%d requests were made, want 5", got)
	}
}

// A call that was begun for a reserve becomes urgent once a pod waits.
func TestPace_UrgentWhilePodsWait(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{conf: slow(2, 1)})
	var pods atomic.Bool
	ctx := vpcapi.UrgentWhile(t.Context(), pods.Load)
	if _, err := n.DescribeSubnets(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := n.DescribeSubnets(ctx)
		done <- err
	}()
	testenv.Never(t, 5, "housekeeping took what is kept for pods", func() bool { return len(done) > 0 })
	pods.Store(true)
	if err := testenv.Receive(t, "the turn of a call that a pod waits for", done); err != nil {
		t.Error(err)
	}
}

// A wait ends when the caller cancels.
func TestPace_Cancelled(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{conf: slow(1, 0)})
	if _, err := n.DescribeSubnets(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := n.DescribeSubnets(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	cancel()
	if err := testenv.Receive(t, "the end of the wait", done); !errors.Is(err, context.Canceled) || len(n.world.Calls()) != 1 {
		t.Errorf("%v after %d requests", err, len(n.world.Calls()))
	}
}

// Waiting requests get their turn, and the call reports how long it waited.
func TestPace_Waits(t *testing.T) {
	t.Parallel()
	const interval = 500 * time.Millisecond
	n := newNode(t, setup{conf: func(c *vpcapi.Config) {
		c.Budget = budget.Policy{Read: budget.Class{Burst: 1, PerSecond: float64(time.Second / interval)}}
	}})
	describe := func() {
		if _, err := n.DescribeSubnets(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := testenv.Took(describe)
	took := first + testenv.Took(describe)
	c := n.last()
	if took < interval || c.Waited > c.Took || c.Attempts != 1 {
		t.Errorf("two requests within %v, the second was %+v", took, c)
	}
	if c.Waited == 0 && first < interval/4 { // otherwise the machine was slower than the budget
		t.Errorf("the second call was %+v, want a wait", c)
	}
}

// Concurrent calls share one budget.
func TestPace_SideBySide(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{conf: func(c *vpcapi.Config) {
		c.Budget = budget.Policy{Read: budget.Class{Burst: 1, PerSecond: 20}}
	}})
	took := testenv.Took(func() {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := n.DescribeSubnets(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	// Tokens 2 to 5 come 50 ms apart.
	if took < 200*time.Millisecond || len(n.world.Calls()) != 5 {
		t.Errorf("%d requests within %v", len(n.world.Calls()), took)
	}
}

// An attempt whose answer was lost may have taken effect, even if the next one is held back.
func TestPace_HeldBackAfterALostAnswer(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{conf: slow(1, 0)})
	n.world.SetFaults(fakeaws.FailCalls("CreateNetworkInterface", 1, 1, fakeaws.Fault{Reply: fakeaws.ReplyClosed, Effect: true}))
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Later())
	defer cancel()
	_, err := n.CreateENI(ctx, vpcapi.CreateENI{SubnetID: n.subnet.ID})
	var held *vpcapi.WaitError
	if !errors.As(err, &held) || !held.Lost || !vpcapi.IsUnanswered(err) {
		t.Errorf("%v: held back with Lost, and unanswered, are wanted", err)
	}
	if got := len(n.world.ENIs()); got != 2 {
		t.Errorf("%d ENIs, want the primary one and the one that was made", got)
	}
}

// The default share does not slow down a node that fills all at once.
func TestPace_DefaultLetsANodeGrow(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{kind: "m5.4xlarge", conf: func(c *vpcapi.Config) { c.Budget, c.Jitter = budget.Policy{}, nil }})
	var wg sync.WaitGroup
	for device := 1; device < 8; device++ {
		wg.Go(func() {
			ctx := vpcapi.Urgent(t.Context())
			e, err := n.CreateENI(ctx, vpcapi.CreateENI{SubnetID: n.subnet.ID, IPs: 10})
			if err != nil {
				t.Error(err)
				return
			}
			at, err := n.AttachENI(ctx, e.ID, 0, device)
			if err != nil {
				t.Error(err)
				return
			}
			if err := n.SetDeleteOnTermination(ctx, e.ID, at); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := n.DescribeENIs(t.Context(), []ipam.ENIID{ipam.ENIID(n.instance.PrimaryENI)}); err != nil {
		t.Error(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.observed {
		if c.Waited > time.Second {
			t.Errorf("%s waited %v", c.Action, c.Waited)
		}
	}
}
