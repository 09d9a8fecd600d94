package sim

import "cnictl/daemon/keeper"

// Mistake is a deliberate mistake of the daemon, to show that the simulation finds it.
type Mistake struct {
	Name string
	bugs keeper.Bugs
}

// Mistakes lists those that there are.
func Mistakes() []Mistake {
	return []Mistake{
		{"answer before durable", keeper.Bugs{AnswerBeforeDurable: true}},
		{"forget on restart", keeper.Bugs{ForgetOnRestart: true}},
		{"release without hold", keeper.Bugs{ReleaseWithoutHold: true}},
		{"leak detached", keeper.Bugs{LeakDetached: true}},
		{"keep missed DELs", keeper.Bugs{KeepMissedDELs: true}},
		{"ignore quarantine", keeper.Bugs{IgnoreQuarantine: true}},
		{"trust metadata", keeper.Bugs{TrustMetadata: true}},
		{"leak failed attach", keeper.Bugs{LeakFailedAttach: true}},
	}
}

// Find plays seeds with the mistake until one fails, and returns what it broke; nil if
// all of them held.
func (m Mistake) Find(start, seeds uint64) *Failure {
	for seed := start; seed < start+seeds; seed++ {
		s := ScenarioOf(seed)
		s.Bugs = m.bugs
		if f := Play(s, nil).Failure; f != nil {
			return f
		}
	}
	return nil
}
