package metrics

import "github.com/prometheus/client_golang/prometheus"

// planning counts what the pool's planner decided.
type planning struct{ actions *prometheus.CounterVec }

func newPlanning(r registrar) planning {
	return planning{r.counters("awscni_plan_actions_total", "The number of planned changes of the pool that were started, by action and reason", "action", "reason")}
}

// PlanAction counts one started action; action and reason are closed sets.
func (p *planning) PlanAction(action, reason string) { p.actions.WithLabelValues(action, reason).Inc() }
