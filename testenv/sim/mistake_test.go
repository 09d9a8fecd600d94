package sim

import "testing"

// foundBy is the seed from which to look for a mistake, to save time; `make sim` starts at 1.
var foundBy = map[Mistake]uint64{
	ignoreQuarantine: 18, leakFailedAttach: 123, trustMetadata: 15, doubtENIs: 23, doubtAddresses: 24,
}

// TestMistakes_AreFound: the simulation finds each deliberate bug, and the same seed passes
// without it.
func TestMistakes_AreFound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skip: -short")
	}
	for _, m := range Mistakes() {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			f := m.Find(max(1, foundBy[m]), 500)
			if f == nil {
				t.Fatal("not found by 500 seeds")
			}
			t.Logf("found by seed %d: %s: %s", f.Seed, f.Invariant, f.Text)
			mustHold(t, f.Seed)
		})
	}
}
