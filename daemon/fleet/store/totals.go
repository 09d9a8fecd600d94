package store

import (
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// sums are the totals plus what is needed to subtract a node again.
type sums struct {
	Totals
	limit, eniLimit, pods       int
	noLimit, noENILimit, noPods int // known nodes without a known limit, and nodes without max-pods
	cooling, enis               int
	noCooling, noENIs           int // known nodes that do not report them
	known                       int // known nodes in the sums
	missing                     int // nodes missing from the sums
}

// add adds a node, or subtracts it if sign is -1.
func (s *sums) add(n *Node, sign int) {
	s.Nodes += sign
	*s.group(n) += sign
	if !n.Known && !fleet.Excused(n.NodeIPAM) {
		s.missing += sign
	}
	switch n.Severity {
	case document.SeverityError:
		s.Errors += sign
	case document.SeverityWarning:
		s.Warnings += sign
	case document.SeverityInfo:
	}
	if fleet.Excused(n.NodeIPAM) {
		return
	}
	accumulate(&s.pods, &s.noPods, n.MaxPods(), sign)
	if !n.Known {
		return
	}
	s.Assigned += sign * n.Assigned
	s.Free += sign * n.Free
	s.Held += sign * n.Held
	accumulate(&s.cooling, &s.noCooling, n.Cooling, sign)
	accumulate(&s.enis, &s.noENIs, n.ENIs, sign)
	s.known += sign
	accumulate(&s.limit, &s.noLimit, n.Limit, sign)
	accumulate(&s.eniLimit, &s.noENILimit, n.ENILimit, sign)
	if w := n.Summary.WaitingADDs; w != nil {
		s.Waiting += sign * *w
	}
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

func accumulate(sum, unknown *int, v *int, sign int) {
	if v == nil {
		*unknown += sign
		return
	}
	*sum += sign * *v
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
func (n *Node) Capacity() *int {
	if n.Summary == nil {
		return nil
	}
	all := total{known: len(n.Summary.Cards) > 0}
	for _, c := range n.Summary.Cards {
		most, _ := fleet.Most(n.NodeIPAM, c)
		all.add(most)
	}
	return all.value()
}

// least returns a sum to which missing of the nodes did not contribute.
func (s *sums) least(sum, missing int) Least {
	return Least{N: sum, Known: missing == 0 && s.missing == 0 || missing < s.known, Bound: missing > 0 || s.missing > 0}
}

// totals returns the sums as a view shows them.
func (s *sums) totals() Totals {
	t := s.Totals
	known := func(sum, unknown int) *int {
		if unknown > 0 || t.Nodes == t.NoDaemon {
			return nil
		}
		return &sum
	}
	t.Pods = known(s.pods, s.noPods)
	if t.Live+t.Partial > 0 {
		t.Limit, t.ENILimit = known(s.limit, s.noLimit), known(s.eniLimit, s.noENILimit)
	}
	t.Cooling, t.ENIs = s.least(s.cooling, s.noCooling), s.least(s.enis, s.noENIs)
	t.Complete = s.missing == 0
	return t
}
