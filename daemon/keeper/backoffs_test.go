package keeper

import "testing"

// TestThrottled: a throttle of what the pool grows by makes it calm, and one of tags,
// which all nodes write when they start, does not.
func TestThrottled(t *testing.T) {
	t.Parallel()
	for action, calms := range map[string]bool{
		"CreateNetworkInterface": true, "AssignPrivateIpAddresses": true, "DescribeNetworkInterfaces": true, "CreateTags": false,
	} {
		b := newBench(t)
		b.tell(Throttled{Action: action})
		if got := b.snapshot(b.clock).Throttled; got != calms {
			t.Errorf("%s: calm %t, want %t", action, got, calms)
		}
		b.pass(2 * calm)
		if b.snapshot(b.clock).Throttled {
			t.Errorf("%s: calm for longer than %v", action, 2*calm)
		}
	}
}
