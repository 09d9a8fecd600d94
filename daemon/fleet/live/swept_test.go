package live_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/watch"
)

// TestStats_NothingIsSweptBeforeTheListIsComplete: while nodes are still to come, a sweep does not
// count as done, even if all that are known were read.
func TestStats_NothingIsSweptBeforeTheListIsComplete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, last := newNode(t, "first"), newNode(t, "last")
		b := run(t, live.Options{})
		synctest.Wait()
		if b.Stats().Swept {
			t.Error("swept before a node was listed")
		}
		b.roster.more.Store(true)
		b.roster.put(first.target())
		elapse(time.Minute)
		if s := b.Stats(); s.Samples > 0 {
			t.Errorf("a node off the screen was read while the list was read: %+v", s)
		}
		b.Focus(watch.Focus{Visible: []string{"first"}})
		elapse(time.Minute)
		if s := b.Stats(); s.Swept || s.Samples == 0 {
			t.Errorf("swept after the first of two nodes, or its row is not read: %+v", s)
		}
		b.roster.more.Store(false)
		b.roster.put(last.target())
		elapse(time.Minute)
		if !b.Stats().Swept {
			t.Error("not swept though both nodes were read")
		}
	})
}
