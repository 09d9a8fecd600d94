package sim

import (
	"math"
	"testing"
	"time"
)

// near reports whether a value is close to the measured one.
func near(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// TestUpstream_MeasuredFigures compares the model with measurements of upstream on one node
// (docs/performance.md).
func TestUpstream_MeasuredFigures(t *testing.T) {
	t.Parallel()
	realistic := OneNode(Realistic())
	// The measurement did not record how late the device appeared. With 0.6 s the model matches
	// it; without, it is 9 % faster.
	late := realistic
	late.Pace.Link = 600 * time.Millisecond
	prefixes := OneNode(Realistic())
	prefixes.Policy.PrefixDelegation = true
	exhausted := OneNode(Instant())
	exhausted.PodsFrom, exhausted.PodsTo, exhausted.Refuse = 40, 40, 1
	for _, row := range []struct {
		name    string
		fleet   Fleet
		seconds float64
		calls   int // 0 if not measured
		failed  float64
		part    float64 // allowed difference
	}{
		{"150 pods, latency 0", OneNode(Instant()), 22.9, 35, 330, 0.1},
		{"150 pods, realistic latency", realistic, 34.4, 0, 520, 0.1},
		{"150 pods, realistic latency, devices 0.6 s late", late, 34.4, 0, 520, 0.05},
		{"150 pods, realistic latency, prefixes", prefixes, 47, 0, 760, 0.1},
		{"40 pods, the first create exhausted", exhausted, 123.5, 0, 0, 0.1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := row.fleet.Upstream()
			calls, _ := o.Total()
			t.Logf("%.1f s, %d calls, %d failed ADDs; measured %.1f s, %d, ~%.0f", o.Up.Seconds(), calls, o.Failed, row.seconds, row.calls, row.failed)
			if o.Failure != nil {
				t.Fatal(o.Failure)
			}
			if o.Running != o.Pods || !near(o.Up.Seconds(), row.seconds, row.part) {
				t.Errorf("%d of %d pods run after %.1f s, want %.1f s ± %.0f %%", o.Running, o.Pods, o.Up.Seconds(), row.seconds, 100*row.part)
			}
			if row.calls > 0 && calls != row.calls {
				t.Errorf("%d EC2 calls, want %d: %v", calls, row.calls, o.Calls)
			}
			if row.failed > 0 && !near(float64(o.Failed), row.failed, row.part) {
				t.Errorf("%d failed ADDs, want %.0f ± %.0f %%", o.Failed, row.failed, 100*row.part)
			}
		})
	}
}

// TestUpstream_ThrottledStart: the process exits when a call that its start needs is
// throttled, and kubelet restarts it.
func TestUpstream_ThrottledStart(t *testing.T) {
	t.Parallel()
	f := ScaleUp(12)
	f.Wave, f.Crowd = time.Second, 100 // one request of each action immediately, then one every 20 s
	o := f.Upstream()
	if o.Failure != nil {
		t.Fatal(o.Failure)
	}
	if o.Running != o.Pods || o.Starts <= o.Nodes || o.Refused[tagAction] == 0 {
		t.Errorf("%d of %d pods run after %d starts of %d nodes; throttled: %v", o.Running, o.Pods, o.Starts, o.Nodes, o.Refused)
	}
}
