package budget

import (
	"strings"
	"time"
)

// Class is one process's share of an action's bucket.
type Class struct {
	Burst     float64 // requests at once; at least 1
	PerSecond float64 // sustained rate after the burst
	Reserve   float64 // part of Burst kept for Urgent requests
}

// Policy says how many requests a process makes and how it backs off. A zero field means
// the value of [Default].
type Policy struct {
	Read    Class            // actions that change nothing
	Write   Class            // actions that change something
	Actions map[string]Class // overrides for single actions

	// Floor is the rate, in requests per second, below which throttling never pushes an
	// action: a node that only waits learns nothing.
	Floor float64
	// Shrink is the factor that a throttle applies to the rate, between 0 and 1.
	Shrink float64
	// Grow is the fraction of the class's rate that a success adds.
	Grow float64
	// Forget is how long after the last throttle the rate returns to the class's: the load
	// that other nodes caused then says nothing about now.
	Forget time.Duration
}

// Default is the share of one node. An account has 100 and 20/s of an action that reads by
// ids, filters or pages (this daemon uses no other reads), and 50 and 5/s of one that
// writes (AWS, "Request throttling for the Amazon EC2 API"). A node that fills in one go
// creates 4 to 15 ENIs; those must not wait here. A thousand nodes at once must share 5/s,
// which is one request per 200 s each; Floor is above that, because refused requests cost
// no tokens, while idle capacity is lost.
func Default() Policy {
	return Policy{
		Read:   Class{Burst: 20, PerSecond: 4, Reserve: 5},
		Write:  Class{Burst: 20, PerSecond: 2, Reserve: 8},
		Floor:  1.0 / 60,
		Shrink: 0.7,
		Grow:   1.0 / 16,
		Forget: 10 * time.Minute,
	}
}

func (p Policy) withDefaults() Policy {
	d := Default()
	p.Read, p.Write = p.Read.or(d.Read), p.Write.or(d.Write)
	actions := make(map[string]Class, len(p.Actions))
	for name, c := range p.Actions {
		actions[name] = c.or(p.classFor(name))
	}
	p.Actions = actions
	if !(p.Floor > 0) {
		p.Floor = d.Floor
	}
	if !(p.Shrink > 0 && p.Shrink < 1) {
		p.Shrink = d.Shrink
	}
	if !(p.Grow > 0) {
		p.Grow = d.Grow
	}
	if p.Forget <= 0 {
		p.Forget = d.Forget
	}
	return p
}

// or replaces figures that are impossible for a bucket.
func (c Class) or(d Class) Class {
	if c == (Class{}) {
		return d
	}
	if !(c.Burst >= 1) {
		c.Burst = 1
	}
	if !(c.PerSecond > 0) {
		c.PerSecond = d.PerSecond
	}
	c.Reserve = max(0, min(c.Reserve, c.Burst-1)) // housekeeping must remain possible
	return c
}

func (p Policy) classOf(action string) Class {
	if c, ok := p.Actions[action]; ok {
		return c
	}
	return p.classFor(action)
}

// classFor distinguishes read from write actions by the verb in EC2's name for them.
func (p Policy) classFor(action string) Class {
	for _, verb := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, verb) {
			return p.Read
		}
	}
	return p.Write
}
