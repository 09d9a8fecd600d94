package sim

import (
	"testing"

	"cnictl/daemon/keeper"
)

// bugSeeds is how many seeds each deliberate mistake gets.
const bugSeeds = 500

// TestRun_FindsBugs shows what the simulation is worth: it finds each deliberate
// mistake, and the seed that found it is fine without.
func TestRun_FindsBugs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		bugs keeper.Bugs
		from uint64 // where the search begins, to save time; make sim BUGS=1 begins at 1
	}{
		"answer before durable": {keeper.Bugs{AnswerBeforeDurable: true}, 1},
		"forget on restart":     {keeper.Bugs{ForgetOnRestart: true}, 1},
		"release without hold":  {keeper.Bugs{ReleaseWithoutHold: true}, 1},
		"leak detached":         {keeper.Bugs{LeakDetached: true}, 1},
		"keep missed DELs":      {keeper.Bugs{KeepMissedDELs: true}, 1},
		"ignore quarantine":     {keeper.Bugs{IgnoreQuarantine: true}, 1},
		"trust metadata":        {keeper.Bugs{TrustMetadata: true}, 1},
		"leak failed attach":    {keeper.Bugs{LeakFailedAttach: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := row.from; seed <= bugSeeds; seed++ {
				f := Run(Options{Seed: seed, Bugs: row.bugs}).Failure
				if f == nil {
					continue
				}
				if without := Run(Options{Seed: seed}).Failure; without != nil {
					t.Errorf("seed %d fails without the bug too: %v", seed, without)
				}
				t.Logf("found by seed %d: %s: %s", seed, f.Invariant, f.Text)
				return
			}
			t.Errorf("not found by %d seeds", bugSeeds)
		})
	}
}
