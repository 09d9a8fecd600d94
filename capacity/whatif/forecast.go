package whatif

import (
	"time"

	"cnictl/daemon/warmpool"
)

// Outlook is one node under some settings.
type Outlook struct {
	Held Held   // after settling with its pods
	Run  Result // over a time in which pods are replaced
}

// Forecast predicts a node now and over some time with perMinute pods replaced per minute.
// It takes about a millisecond for an hour at one per minute, and gives the same as a Run
// with that load.
func Forecast(n Node, over time.Duration, perMinute float64, m Model) Outlook {
	const seed = 1
	r := settled([]Node{n}, Load{For: over, Seed: seed, Free: -1, Steps: Replacements(perMinute, over, seed)}, m)
	o := Outlook{Held: r.nodes[0].holds()}
	r.replan(0)
	for r.Next() {
	}
	o.Run = r.Result()
	return o
}

// Next returns the planner's first actions when a settled node gets other settings.
func Next(n Node, changed Settings, m Model) []warmpool.Action {
	r := settled([]Node{n}, Load{Free: -1}, m)
	of := r.nodes[0]
	of.Now = r.now
	return m.Plan(of.Snapshot(), changed.Policy(), r.now)
}
