package sim

import (
	"strings"
	"testing"
	"time"
)

// TestFleet_OursAndUpstream compares both daemons on one node and on several, with full and
// with reduced request limits.
func TestFleet_OursAndUpstream(t *testing.T) {
	t.Parallel()
	one := OneNode(Realistic())
	few := ScaleUp(30)
	few.Wave = 10 * time.Second
	prefixes := few
	prefixes.Policy.PrefixDelegation = true
	crowded := few
	crowded.Crowd = 5
	for _, row := range []struct {
		name  string
		fleet Fleet
	}{{"one node", one}, {"thirty", few}, {"prefixes", prefixes}, {"crowded account", crowded}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := Comparison{row.fleet, row.fleet.Ours(), row.fleet.Upstream()}
			var text strings.Builder
			if _, err := c.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + text.String())
			for _, o := range []Outcome{c.Ours, c.Upstream} {
				if o.Failure != nil {
					t.Fatal(o.Failure)
				}
				if o.Running != o.Pods || len(o.Waits) != o.Pods {
					t.Errorf("%d of %d pods run", o.Running, o.Pods)
				}
			}
			ours, _ := c.Ours.Total()
			theirs, _ := c.Upstream.Total()
			if ours >= theirs || c.Ours.Wait(1) >= c.Upstream.Wait(1) || c.Ours.Failed >= c.Upstream.Failed {
				t.Errorf("ours: %d requests, %v until the last pod ran, %d failed ADDs; upstream: %d, %v, %d",
					ours, c.Ours.Wait(1), c.Ours.Failed, theirs, c.Upstream.Wait(1), c.Upstream.Failed)
			}
			if made := c.Ours.ENIs + c.Ours.Loose; row.fleet.Crowd == 0 && c.Ours.Refused[createAction] == 0 && c.Ours.Calls[createAction] != made {
				t.Errorf("%d ENIs were asked for and %d are there: %v", c.Ours.Calls[createAction], made, c.Ours.Calls)
			}
		})
	}
}

// scarce returns a fleet with a part of EC2's request limits, which slow it down like a fleet
// of a thousand.
func scarce() Fleet {
	f := ScaleUp(60)
	f.Crowd = 1000.0 / 60
	return f
}

// TestFleet_UnderRequestLimits: our fleet is nearly as fast as the limits allow, and creates
// few ENIs that no pod needs.
func TestFleet_UnderRequestLimits(t *testing.T) {
	t.Parallel()
	const mostTime, mostENIs = 2.0, 1.4
	f := scarce()
	c := Comparison{f, f.Ours(), f.Upstream()}
	if c.Ours.Failure != nil {
		t.Fatal(c.Ours.Failure)
	}
	if err := c.Verdict(); err != nil {
		t.Error(err)
	}
	b := f.Bound()
	took := c.Ours.All.Seconds() / b.After.Seconds()
	made := float64(c.Ours.ENIs+c.Ours.Loose) / float64(b.Calls[createAction])
	t.Logf("%.2f × the bound of %v, %.2f × the ENIs that are needed", took, b.After, made)
	if took > mostTime || made > mostENIs {
		t.Errorf("%.2f × the bound and %.2f × the ENIs, want %g and %g at most", took, made, mostTime, mostENIs)
	}
}

// TestFleet_BoundHolds: no fleet is faster than the request limits allow, or needs fewer calls
// than the bound.
func TestFleet_BoundHolds(t *testing.T) {
	t.Parallel()
	f := ScaleUp(20)
	f.Crowd, f.Wave = 10, time.Second // 5 immediately, then one every 2 s
	b := f.Bound()
	if want := 30 * time.Second; b.After != want {
		t.Errorf("bound %v, want %v: %v", b.After, want, b.Calls)
	}
	for name, o := range map[string]Outcome{"ours": f.Ours(), "upstream": f.Upstream()} {
		if o.Failure != nil {
			t.Fatal(o.Failure)
		}
		if o.All < b.After {
			t.Errorf("%s: all pods run after %v, sooner than the buckets allow: %v", name, o.All, b.After)
		}
		// A node whose assignments are refused for long can have all its addresses from a created ENI.
		for _, fill := range [][]string{{assignAction, createAction}, {attachAction}} {
			got, needed := 0, 0
			for _, action := range fill {
				got += o.Calls[action] - o.Refused[action]
				needed += b.Calls[action]
			}
			if got < needed {
				t.Errorf("%s: %d calls of %v, want %d at least", name, got, fill, needed)
			}
		}
	}
}
