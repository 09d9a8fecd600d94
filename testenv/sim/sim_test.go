package sim

import "testing"

// TestRun_IsDeterministic: a seed always gives the same run, also one that is traced.
func TestRun_IsDeterministic(t *testing.T) {
	t.Parallel()
	const seed = 2
	lines := 0
	want, got := Run(Options{Seed: seed}), Run(Options{Seed: seed, Trace: func(string) { lines++ }})
	if got.Hash != want.Hash || got.Stats.Steps != want.Stats.Steps || lines == 0 {
		t.Errorf("%d steps, hash %x; again %d steps in %d lines, hash %x", want.Stats.Steps, want.Hash, got.Stats.Steps, lines, got.Hash)
	}
}
