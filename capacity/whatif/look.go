package whatif

import (
	"time"

	"cnictl/daemon/warmpool"
)

// Outlook is one node today and with changed settings.
type Outlook struct {
	Today, Changed       Held   // settled with its pods
	TodayRun, ChangedRun Result // over some time in which pods are replaced
	// Next is what the planner does first after the change.
	Next []warmpool.Action
}

// Look is one node under today's settings and under changed ones, now and over some time with
// so many pods replaced per minute. It takes about a millisecond for an hour at one per
// minute.
func Look(today, changed Settings, pods int, over time.Duration, perMinute float64, m Model) Outlook {
	load := Load{For: over, Free: -1, Steps: Replacements(perMinute, over, 0)}
	var o Outlook
	play := func(s Settings) (Held, Result) {
		r := settled([]Node{{s, pods}}, load, m)
		n := r.nodes[0]
		if o.Next == nil {
			n.Now = r.now
			o.Next = m.Plan(n.Snapshot(), changed.Policy(), r.now)
		}
		h := n.holds()
		r.replan(0)
		for r.Next() {
		}
		return h, r.Result()
	}
	o.Today, o.TodayRun = play(today)
	o.Changed, o.ChangedRun = play(changed)
	return o
}
