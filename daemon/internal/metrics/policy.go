package metrics

import "github.com/prometheus/client_golang/prometheus"

// policyAgent counts calls to the network policy agent.
type policyAgent struct {
	agentCalls       *prometheus.CounterVec
	deletionsWaiting prometheus.Gauge
}

// Calls to the network policy agent, and their results.
const (
	CallEnforce = "enforce"
	CallDelete  = "delete"

	ResultSuccess     = "success"
	ResultRefused     = "refused"
	ResultUnreachable = "unreachable"
	ResultGivenUp     = "given-up" // of deletions: the agent was away for too long, or too many waited
)

func newPolicyAgent(r registrar) policyAgent {
	return policyAgent{
		agentCalls: r.counters("awscni_policy_agent_calls_total", "The number of calls of the network policy agent, by call and result", "call", "result"),
		deletionsWaiting: register(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "awscni_policy_agent_waiting_deletions", Help: "The number of deleted pods not yet reported to the network policy agent",
		})),
	}
}

// AgentCall counts one call; both arguments are among the constants above.
func (p *policyAgent) AgentCall(call, result string) {
	p.agentCalls.WithLabelValues(call, result).Inc()
}

// DeletionsWaiting sets the number of deletions that wait for the agent.
func (p *policyAgent) DeletionsWaiting(n int) { p.deletionsWaiting.Set(float64(n)) }
