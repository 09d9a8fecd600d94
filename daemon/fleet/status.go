package fleet

import (
	"cmp"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/query"
)

// StatusOf summarizes a sweep, except for subnet fill, causes and the sweep itself.
func StatusOf(list document.NodeIPAMList) document.FleetStatus {
	s := document.FleetStatus{
		APIVersion: introspect.APIVersion, Kind: document.KindFleet,
		Subnets: []document.SubnetFill{}, Problems: []document.Problem{},
		Partial: list.Partial, Errors: list.Errors, SampledAt: list.SampledAt,
	}
	s.Nodes.Total = len(list.Items)
	addressLimit, space, eniLimit := sum{}, sum{}, sum{}
	var subnets []introspect.Subnet
	silent := false // a node that should answer could not be read
	for _, n := range list.Items {
		count(&s.Nodes, n.State)
		s.Problems = append(s.Problems, Problems(n)...)
		if n.Summary == nil {
			s.Activity.Partial = s.Activity.Partial || n.State != document.StateNoDaemon
			silent = silent || !Excused(n)
			continue
		}
		if len(n.Summary.Cards) == 0 { // the node reported no pool
			addressLimit.missing, space.missing, eniLimit.missing = true, true, true
		}
		for _, c := range n.Summary.Cards {
			accumulate(&s.Addresses.Total, &c.Total)
			accumulate(&s.Addresses.Assigned, &c.Assigned)
			accumulate(&s.Addresses.Cooling, c.Cooling)
			accumulate(&s.Addresses.Free, &c.Free)
			accumulate(&s.ENIs.Attached, c.ENIs)
			addressLimit.add(c.AddressLimit)
			space.add(room(n, c))
			eniLimit.add(c.ENILimit)
		}
		addActivity(&s.Activity, *n.Summary)
		subnets = mergeSubnets(subnets, n.Summary.Subnets)
	}
	if s.Nodes.Live+s.Nodes.MetricsOnly+s.Nodes.Stale > 0 {
		s.Addresses.Limit, s.Addresses.Room, s.ENIs.Limit = addressLimit.value(), space.value(), eniLimit.value()
	} else if !silent {
		none(&s)
	}
	slices.SortFunc(subnets, func(a, b introspect.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	for _, subnet := range subnets {
		s.Subnets = append(s.Subnets, document.SubnetFill{Subnet: subnet})
	}
	slices.SortStableFunc(s.Problems, func(a, b document.Problem) int {
		return cmp.Or(cmp.Compare(Rank(a.Severity), Rank(b.Severity)), query.Natural(a.Node, b.Node))
	})
	return s
}

// none sets the pool of a fleet in which no node has one.
func none(s *document.FleetStatus) {
	a := &s.Addresses
	for _, into := range []**int{&a.Total, &a.Assigned, &a.Cooling, &a.Free, &s.ENIs.Attached} {
		*into = new(0)
	}
}

func count(c *document.NodeCounts, s document.State) {
	switch s {
	case document.StateLive:
		c.Live++
	case document.StateForbidden:
		c.Forbidden++
	case document.StateStale:
		c.Stale++
	case document.StateMetricsOnly:
		c.MetricsOnly++
	case document.StateAPIOnly:
		c.APIOnly++
	case document.StateNoDaemon:
		c.NoDaemon++
	default:
		c.Unreachable++
	}
}

// sum adds known values; one unknown term makes it unknown.
type sum struct {
	n       int
	missing bool
}

func (s *sum) add(v *int) {
	if v == nil {
		s.missing = true
		return
	}
	s.n += *v
}

func (s sum) value() *int {
	if s.missing {
		return nil
	}
	return &s.n
}

func addActivity(a *document.Activity, s introspect.Summary) {
	if s.WaitingADDs != nil || s.ADDs != nil || s.DELs != nil || s.EC2Calls != nil {
		a.Nodes++
	}
	if s.WaitingADDs == nil || s.ADDs == nil || s.DELs == nil || s.EC2Calls == nil {
		a.Partial = true
	}
	accumulate(&a.WaitingADDs, s.WaitingADDs)
	if s.ADDs != nil {
		accumulate(&a.ADDs, &s.ADDs.Total)
		accumulate(&a.FailedADDs, s.ADDs.Failed)
	}
	if s.DELs != nil {
		accumulate(&a.DELs, &s.DELs.Total)
	}
	if s.EC2Calls == nil {
		return
	}
	var calls, errs int
	for _, c := range s.EC2Calls {
		calls += c.Calls
		errs += c.Errors
	}
	accumulate(&a.EC2Calls, &calls)
	accumulate(&a.EC2Errors, &errs)
}

func accumulate(into **int, v *int) {
	if v == nil {
		return
	}
	total := *v
	if *into != nil {
		total += **into
	}
	*into = &total
}

// mergeSubnets keeps the newest entry of each subnet.
func mergeSubnets(have, more []introspect.Subnet) []introspect.Subnet {
	for _, s := range more {
		i := slices.IndexFunc(have, func(h introspect.Subnet) bool { return h.ID == s.ID })
		switch {
		case i < 0:
			have = append(have, s)
		case s.AsOf != nil && (have[i].AsOf == nil || s.AsOf.After(*have[i].AsOf)):
			have[i] = s
		}
	}
	return have
}

// Rank orders severities, worst first.
func Rank(s document.Severity) int {
	switch s {
	case document.SeverityError:
		return 0
	case document.SeverityWarning:
		return 1
	}
	return 2
}
