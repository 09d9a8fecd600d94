package introspectserver

import (
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/warmpool"
)

// unmet lists a plan's unreachable targets. It lists ignored targets only if the query sets
// them: the shipped manifest sets some on every node.
func unmet(p Pool, policy warmpool.Policy, q introspect.PlanQuery) []introspect.UnmetTarget {
	asked := map[string]bool{"WARM_ENI_TARGET": q.WarmENI != nil, "WARM_PREFIX_TARGET": q.WarmPrefix != nil}
	out := []introspect.UnmetTarget{}
	for card := range p.Snapshot.Limits.ENIsByCard {
		for _, u := range warmpool.Unmet(p.Snapshot, policy, p.Now, card) {
			if u.Limit.Ignored() && !asked[u.Target] {
				continue
			}
			out = append(out, introspect.UnmetTarget{
				Card: card, Target: u.Target, Wanted: u.Wanted, Possible: u.Possible, Reason: string(u.Limit), Title: u.Limit.Title(),
			})
		}
	}
	return out
}
