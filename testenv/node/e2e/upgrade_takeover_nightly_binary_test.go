//go:build nightly

package e2e_test

import (
	"testing"

	"cnictl/testenv/node"
)

// TestUpgrade_TheNodeIsAsRecorded checks the fixture: the other tests start from the recorded
// state.
func TestUpgrade_TheNodeIsAsRecorded(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			r := readRecording(t, mode)
			l, n := r.boot(t)
			pods := r.restore(l, n)
			compare(t, r.picture(), l.take(n, r.sysctlPaths(), pods), r.staleNeighbour()...)
			if got := l.sh(n, "cat "+node.Checkpoint); got != string(r.file) {
				t.Errorf("file is %s", got)
			}
			r.sameENIs(l, n)
		})
	}
}
