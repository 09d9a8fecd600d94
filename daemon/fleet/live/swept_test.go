package live_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/fleet/live"
)

// TestStats_NothingIsSweptBeforeANodeIsKnown: without any node, a sweep does not count as
// done.
func TestStats_NothingIsSweptBeforeANodeIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		well := newNode(t, "well")
		b := run(t, live.Options{})
		synctest.Wait()
		if b.Stats().Swept {
			t.Error("swept before a node was listed")
		}
		b.roster.put(well.target())
		elapse(time.Minute)
		if !b.Stats().Swept {
			t.Error("not swept though the one node was read")
		}
	})
}
