package sim

import "time"

// bucket is a token bucket for EC2's request limits.
type bucket struct {
	size, tokens, perSecond float64
	at                      time.Duration
}

// Documented sizes and refill rates of EC2's buckets, one per action and account (AWS,
// "Request throttling for the Amazon EC2 API").
const (
	mutatingSize, mutatingRefill = 50, 5
	describeSize, describeRefill = 100, 20
)

// admit takes a token for a call of an action if one is left. In a crowded account, other
// clients use part of the tokens.
func (e *ec2) admit(action string, mutating bool) bool {
	if e.w.Scenario.Unlimited {
		return true
	}
	b := e.buckets[action]
	if b == nil {
		b = &bucket{size: describeSize, perSecond: describeRefill, at: e.w.clock}
		if mutating {
			b.size, b.perSecond = mutatingSize, mutatingRefill
		}
		b.size, b.perSecond = max(1, b.size/e.w.Scenario.Crowd), b.perSecond/e.w.Scenario.Crowd
		b.tokens = b.size
		e.buckets[action] = b
	}
	b.tokens = min(b.size, b.tokens+(e.w.clock-b.at).Seconds()*b.perSecond)
	b.at = e.w.clock
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
