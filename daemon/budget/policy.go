package budget

import (
	"strings"
	"time"
)

// Class is the share that one process takes of an action's bucket.
type Class struct {
	Burst     float64 // requests at once; at least 1
	PerSecond float64 // and then
	Reserve   float64 // of Burst, for Urgent requests only
}

// Policy says how much a process asks and how it gives way. The zero value of a field
// stands for that of [Default].
type Policy struct {
	Read    Class            // actions that change nothing
	Write   Class            // actions that change something
	Actions map[string]Class // of single actions, before the classes

	// Floor is the rate, in requests per second, below which no throttle takes an
	// action: a node that only waits learns nothing.
	Floor float64
	// Shrink is what a throttle leaves of the rate, between 0 and 1.
	Shrink float64
	// Grow is the part of the class's rate that a success adds.
	Grow float64
	// Forget is how long after the last throttle the rate is the class's again: what
	// other nodes asked for then says nothing about now.
	Forget time.Duration
}

// Default is the share of one node. An account has 100 and 20/s of an action that
// reads by ids, filters or pages (this daemon has no others), 50 and 5/s of one that
// writes (AWS, "Request throttling for the Amazon EC2 API"). A node that fills in one
// go creates 4 to 15 ENIs; those must not wait here. A thousand nodes at once must
// share 5/s, each one request in 200 s; Floor is above that, because refused requests cost
// no tokens, unlike idle capacity.
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

// or replaces figures that no bucket could have.
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
	c.Reserve = max(0, min(c.Reserve, c.Burst-1)) // housekeeping must be able to happen
	return c
}

func (p Policy) classOf(action string) Class {
	if c, ok := p.Actions[action]; ok {
		return c
	}
	return p.classFor(action)
}

// classFor distinguishes reading from writing actions by their verb, as EC2 names them.
func (p Policy) classFor(action string) Class {
	for _, verb := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, verb) {
			return p.Read
		}
	}
	return p.Write
}
