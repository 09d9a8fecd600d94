package warmpool

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// TestCool: an address that waits for a pass over connection tracking is in cooldown like any
// other, and its end is never past, so that nothing waits for a time that has gone by.
func TestCool(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	record := func(age time.Duration, tracked bool) ipam.AddressState {
		return ipam.AddressState{Address: netip.MustParseAddr("10.0.0.1"), UnassignedAt: now.Add(-age), Tracked: tracked}
	}
	for name, row := range map[string]struct {
		records []ipam.AddressState
		n       int
		end     time.Duration // from now
	}{
		"in cooldown":                  {[]ipam.AddressState{record(10*time.Second, true)}, 1, 20*time.Second + 1},
		"after it":                     {[]ipam.AddressState{record(31*time.Second, false)}, 0, 0},
		"after it, before the pass":    {[]ipam.AddressState{record(31*time.Second, true)}, 1, time.Second},
		"one of each":                  {[]ipam.AddressState{record(31*time.Second, true), record(time.Second, true), record(40*time.Second, false)}, 2, time.Second},
		"never used":                   {[]ipam.AddressState{{}}, 0, 0},
		"at the last instant, no pass": {[]ipam.AddressState{record(30*time.Second, false)}, 1, 1},
	} {
		c := ipam.CIDRState{Prefix: netip.MustParsePrefix("10.0.0.0/28"), Records: row.records}
		n, end := cool(&c, now, 30*time.Second)
		if n != row.n || row.n > 0 && end.Sub(now) != row.end {
			t.Errorf("%s: %d until %v, want %d until %v", name, n, end.Sub(now), row.n, row.end)
		}
		if cooling := c.Cooling(now, 30*time.Second); cooling != n {
			t.Errorf("%s: the book counts %d, the planner %d", name, cooling, n)
		}
	}
}
