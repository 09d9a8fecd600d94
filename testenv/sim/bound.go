package sim

import (
	"time"

	"cnictl/testenv/aws/ec2model"
)

// Bound is what EC2's request limits alone impose on a fleet.
type Bound struct {
	// Calls is the minimum number of calls for the pods, by action: one call fills the primary
	// ENI, and each further ENI is created full and takes three calls. Nothing is described,
	// tagged or kept warm.
	Calls map[string]int
	// After is when the last of these calls gets a token from its action's bucket.
	After time.Duration
}

// Bound computes the bound of a fleet.
func (f Fleet) Bound() Bound {
	perENI := f.facts().IPv4PerENI - 1
	if f.Policy.PrefixDelegation {
		perENI *= ec2model.BlockSize
	}
	b := Bound{Calls: map[string]int{}}
	for _, pods := range f.podsByNode() {
		b.Calls[assignAction]++
		enis := (max(0, pods-perENI) + perENI - 1) / perENI
		for _, action := range []string{createAction, attachAction, modifyAction} {
			b.Calls[action] += enis
		}
	}
	if f.Unlimited {
		return b
	}
	crowd := max(1, f.Crowd)
	for _, calls := range b.Calls {
		left := float64(calls) - ec2model.Mutating.Size/crowd
		b.After = max(b.After, time.Duration(left*crowd/ec2model.Mutating.PerSecond*float64(time.Second)))
	}
	return b
}
