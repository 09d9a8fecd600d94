package store

import (
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// sums are the totals plus what is needed to subtract a node again.
type sums struct {
	Totals
	limit, room, eniLimit, pods, cooling, enis, waiting partial

	counts  [allCounts]partial
	known   int // known nodes in the sums
	missing int // nodes missing from the sums
	silent  int // nodes with a daemon that do not report all of their activity
}

// partial is a sum over the nodes that report its terms.
type partial struct {
	sum     int
	unknown int // nodes that do not
}

func (p *partial) add(v *int, sign int) {
	if v == nil {
		p.unknown += sign
		return
	}
	p.sum += sign * *v
}

// add adds a node, or subtracts it if sign is -1.
func (s *sums) add(n *Node, sign int) {
	s.Nodes += sign
	*s.group(n) += sign
	if !n.Known && !fleet.Excused(n.NodeIPAM) {
		s.missing += sign
	}
	switch {
	case n.Severity.Harms():
		s.Errors += sign
	case n.Severity == document.SeverityWarning:
		s.Warnings += sign
	}
	if fleet.Excused(n.NodeIPAM) {
		return
	}
	s.pods.add(n.MaxPods(), sign)
	if !n.Known {
		if n.State != document.StateNoDaemon {
			s.silent += sign
		}
		return
	}
	if n.Pooled() {
		s.Pools += sign
	}
	s.Assigned += sign * n.Assigned
	s.Free += sign * n.Free
	s.Held += sign * n.Held
	s.cooling.add(n.Cooling, sign)
	s.enis.add(n.ENIs, sign)
	s.known += sign
	s.limit.add(n.Limit, sign)
	s.room.add(n.Room, sign)
	s.eniLimit.add(n.ENILimit, sign)
	s.activity(n, sign)
	if t := n.Summary.Trunk; t != nil && t.ENIID != "" {
		s.Trunks += sign
		if t.BranchUsed != nil {
			s.Branches += sign * *t.BranchUsed
		}
		if t.BranchLimit != nil {
			s.BranchOf += sign * *t.BranchLimit
		}
	}
}

// activity adds what a known node did.
func (s *sums) activity(n *Node, sign int) {
	counts := countsOf(n.Summary)
	for i, v := range counts {
		s.counts[i].add(v, sign)
	}
	some, all := false, true
	for _, v := range []*int{n.Summary.WaitingADDs, counts[countADDs], counts[countDELs], counts[countEC2]} {
		some, all = some || v != nil, all && v != nil
	}
	s.waiting.add(n.Summary.WaitingADDs, sign)
	if some {
		s.Activity.Nodes += sign
	}
	if !all {
		s.silent += sign
	}
}

// group returns the count that a node belongs to.
func (s *sums) group(n *Node) *int {
	switch n.State {
	case document.StateLive:
		if n.Error == nil {
			return &s.Live
		}
		return &s.Partial
	case document.StateStale, document.StateMetricsOnly:
		return &s.Partial
	case document.StateAPIOnly:
		if n.Error == nil {
			return &s.Unasked
		}
	case document.StateNoDaemon:
		if fleet.Excused(n.NodeIPAM) {
			return &s.NoDaemon
		}
	case document.StateUnreachable, document.StateForbidden:
	}
	return &s.Down
}

// MaxPods is fleet.MaxPods.
func (n *Node) MaxPods() *int { return fleet.MaxPods(n.NodeIPAM) }

// Capacity is the most addresses that pods can have, see [fleet.Most]; nil if unknown.
func (n *Node) Capacity() *int { return n.capacity }

// Scale is Capacity for a bar of what the node holds, see [fleet.Capacity].
func (n *Node) Scale() *int { return n.scale }

// least returns a sum to which some of the nodes may not have contributed.
func (s *sums) least(p partial) Least {
	return Least{
		N: p.sum, Known: p.unknown == 0 && s.missing == 0 || p.unknown < s.known,
		Bound: p.unknown > 0 || s.missing > 0,
	}
}

// totals returns the sums as a view shows them.
func (s *sums) totals() Totals {
	t := s.Totals
	known := func(p partial) *int {
		if p.unknown > 0 || t.Nodes == t.NoDaemon {
			return nil
		}
		return &p.sum
	}
	t.Pods = known(s.pods)
	if t.Live+t.Partial > 0 {
		t.Limit, t.Room, t.ENILimit = known(s.limit), known(s.room), known(s.eniLimit)
	}
	t.Cooling, t.ENIs, t.Activity.Waiting = s.least(s.cooling), s.least(s.enis), s.least(s.waiting)
	for i, to := range [allCounts]*Least{
		countADDs: &t.Activity.ADDs, countFailed: &t.Activity.Failed, countDELs: &t.Activity.DELs,
		countEC2: &t.Activity.EC2, countEC2Errors: &t.Activity.EC2Errors,
	} {
		*to = s.least(s.counts[i])
	}
	t.Complete, t.Activity.Partial = s.missing == 0, s.silent > 0
	return t
}
