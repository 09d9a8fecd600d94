package keeper

import (
	"testing"
	"time"
)

// half is a jitter that returns the middle.
func half(n time.Duration) time.Duration { return n / 2 }

func TestClock_GrowsJittersAndResets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	var c BackoffTimer
	step := ThrottleFirst
	for range 12 {
		c.Fail(now, now, "ec2-throttled", ThrottleFirst, ThrottleMax, half)
		if c.Until.Before(now.Add(step/2)) || c.Until.After(now.Add(step)) {
			t.Fatalf("step %v: waits %v, want between half of it and the whole", step, c.Until.Sub(now))
		}
		step = min(2*step, ThrottleMax)
	}
	c.Succeed(now)
	if c != (BackoffTimer{}) {
		t.Errorf("after a success: %+v", c)
	}
}

// TestClock_SideBySide: six concurrent attempts that fail count as one step. If one of them
// succeeds later, the back-off does not end.
func TestClock_SideBySide(t *testing.T) {
	t.Parallel()
	started := time.Unix(1_790_000_000, 0)
	var c BackoffTimer
	for i := range 6 {
		c.Fail(started, started.Add(time.Duration(i+1)*time.Millisecond), "ec2-throttled", ThrottleFirst, ThrottleMax, half)
	}
	if c.step != ThrottleFirst {
		t.Errorf("six failures side by side: step %v, want %v", c.step, ThrottleFirst)
	}
	c.Succeed(started)
	if c.Until.IsZero() {
		t.Error("a success from before the failure ended the back-off")
	}
	c.Fail(started.Add(time.Second), started.Add(time.Second), "ec2-throttled", ThrottleFirst, ThrottleMax, half)
	if c.step != 2*ThrottleFirst {
		t.Errorf("the next attempt failed too: step %v, want %v", c.step, 2*ThrottleFirst)
	}
}
