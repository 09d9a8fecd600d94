package keeper

import (
	"testing"
	"time"

	"cnictl/daemon/warmpool"
)

// TestReady: a node is ready while a new pod could get an address, or could not only because
// pods use all of them.
func TestReady(t *testing.T) {
	t.Parallel()
	full := warmpool.Limits{IPv4PerENI: 10, ENIsByCard: []int{1}}
	for name, row := range map[string]struct {
		addresses, pods int
		change          func(*bench)
		want            bool
	}{
		"no address yet":                  {0, 0, nil, false},
		"one is free":                     {1, 0, nil, true},
		"all are taken, and one can come": {1, 1, nil, true},
		"the node is full":                {9, 9, func(b *bench) { b.limits = full }, true},
		"terminating":                     {9, 0, func(b *bench) { b.terminating = true }, false},
		"all are taken, and EC2 refuses": {9, 9, func(b *bench) {
			b.backoff.attach.Fail(b.clock, b.clock, "ec2-unauthorized", time.Minute, time.Minute, middle)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.policy.WarmENI = 0
			b.give(row.addresses)
			for i := range row.pods {
				a := b.add(string(rune('a'+i)), 0)
				b.send(a.Add)
				b.write(nil)
			}
			b.ops = nil // operations started for the target are not tested here
			if row.change != nil {
				row.change(b)
			}
			if got := b.Ready(b.clock); got != row.want {
				t.Errorf("ready: %v, want %v", got, row.want)
			}
		})
	}
}
