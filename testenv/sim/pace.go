package sim

import (
	"time"

	"cnictl/daemon/keeper"
)

// Pace is how long everything outside takes in a world without random faults, that of a
// fleet, where each node must meet the same EC2.
type Pace struct {
	// Calls is how long EC2 takes to answer a call, by action; Others applies to other actions
	// and to throttled calls.
	Calls  map[string]time.Duration
	Others time.Duration
	// Link is how long after the answer to an attach the node's link appears and the metadata
	// service shows it.
	Link time.Duration
}

// Instant is EC2 with latency 0, as in most measurements of upstream (docs/performance.md).
func Instant() Pace { return Pace{} }

// Realistic has the latencies of the other rows in that table.
func Realistic() Pace {
	return Pace{Others: 80 * time.Millisecond, Calls: map[string]time.Duration{
		createAction: 300 * time.Millisecond, attachAction: time.Second, assignAction: 400 * time.Millisecond,
		modifyAction: 150 * time.Millisecond, tagAction: 100 * time.Millisecond,
	}}
}

func (p *Pace) of(action string) time.Duration {
	if d, ok := p.Calls[action]; ok {
		return d
	}
	return p.Others
}

// answerAfter returns how long after EC2 received a call its answer takes.
func (w *World) answerAfter(action string, f fate, err error) time.Duration {
	p := w.Scenario.Pace
	switch {
	case p == nil:
		return f.answer
	case keeper.IsThrottled(err):
		return p.Others
	default:
		return p.of(action)
	}
}

// attachTime returns how long an attachment takes after EC2 accepted it.
func (w *World) attachTime() time.Duration {
	if p := w.Scenario.Pace; p != nil {
		return p.of(attachAction)
	}
	return w.dice.ec2.span(300*time.Millisecond, 5*time.Second)
}

// linkTime returns how long after the attachment the node's link appears.
func (w *World) linkTime() time.Duration {
	if p := w.Scenario.Pace; p != nil {
		return p.Link
	}
	return w.dice.ec2.span(20*time.Millisecond, 800*time.Millisecond)
}

// metadataLag returns how long after a change the node's metadata service shows it.
func (n *node) metadataLag() time.Duration {
	if p := n.w.Scenario.Pace; p != nil {
		return p.Link
	}
	return n.w.dice.ec2.span(0, n.spec.MetadataLag+1)
}
