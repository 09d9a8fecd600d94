package sim

import (
	"net/netip"

	"cnictl/testenv/aws/ec2model"
)

// subnet is one subnet.
type subnet struct {
	*ec2model.Space
	id   string
	az   string
	cidr netip.Prefix
	tags map[string]string

	foreign []netip.Prefix // in use outside the cluster
}

// take takes n of what find finds, searching from a position; nil if there are not enough.
func (s *subnet) take(find func(n, from int) []netip.Prefix, n, from int) []netip.Prefix {
	found := find(n, from)
	if len(found) < n {
		return nil
	}
	for _, p := range found {
		s.Mark(p, true)
	}
	return found
}

// admit takes a token for a call of an action if one is left. In a crowded account, other
// clients use part of the tokens.
func (e *ec2) admit(action string, mutating bool) bool {
	if e.w.Scenario.Unlimited {
		return true
	}
	b := e.buckets[action]
	if b == nil {
		l := ec2model.Describe
		if mutating {
			l = ec2model.Mutating
		}
		l.Size, l.PerSecond = max(1, l.Size/e.w.Scenario.Crowd), l.PerSecond/e.w.Scenario.Crowd
		b = ec2model.NewBucket(l, e.w.now())
		e.buckets[action] = b
	}
	return b.Take(e.w.now())
}
