package status

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
)

// Of sums up nodes that were read in the given number of seconds; nil if unknown. The list says
// what could not be read, and when.
func Of(v *store.View, list document.NodeIPAMList, seconds *float64) document.FleetStatus {
	t, act := v.Totals, v.Totals.Activity
	s := document.FleetStatus{
		APIVersion: introspect.APIVersion, Kind: document.KindFleet, Nodes: countsOf(v.Nodes),
		Addresses: document.Addresses{Limit: t.Limit, Room: t.Room, Cooling: t.Cooling.Value()},
		ENIs:      document.ENICounts{Attached: t.ENIs.Value(), Limit: t.ENILimit},
		Activity:  document.Activity{Partial: act.Partial, Nodes: act.Nodes},
		Subnets:   []document.SubnetFill{}, Problems: []document.Problem{},
		Causes: inventory.CauseCounts(v.Nodes), Sweep: sweepOf(v.Nodes, seconds),
		Partial: list.Partial, Errors: list.Errors, SampledAt: list.SampledAt,
	}
	if t.Pools > 0 || t.Nodes == t.NoDaemon {
		s.Addresses.Total, s.Addresses.Assigned, s.Addresses.Free = &t.Held, &t.Assigned, &t.Free
	}
	if act.Nodes > 0 {
		a := &s.Activity
		a.WaitingADDs, a.ADDs, a.FailedADDs = act.Waiting.Value(), act.ADDs.Value(), act.Failed.Value()
		a.DELs, a.EC2Calls, a.EC2Errors = act.DELs.Value(), act.EC2.Value(), act.EC2Errors.Value()
	}
	for _, u := range reported(v) {
		s.Subnets = append(s.Subnets, fill(u))
	}
	for _, n := range v.Nodes {
		s.Problems = append(s.Problems, n.Problems...)
	}
	slices.SortStableFunc(s.Problems, func(a, b document.Problem) int { return cmp.Compare(a.Severity.Rank(), b.Severity.Rank()) })
	return s
}

// reported returns the subnets that nodes report on.
func reported(v *store.View) []store.SubnetUse {
	return slices.DeleteFunc(slices.Clone(v.Subnets), func(u store.SubnetUse) bool { return u.Node == "" })
}

// countsOf counts the nodes by state.
func countsOf(nodes []*store.Node) document.NodeCounts {
	c := document.NodeCounts{Total: len(nodes)}
	for _, n := range nodes {
		switch n.State {
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
	return c
}

// fill computes how full a subnet is, as cnictl subnets does.
func fill(u store.SubnetUse) document.SubnetFill {
	s := document.SubnetFill{Subnet: u.Subnet, Short: inventory.SubnetShort(u), Namespaces: []document.NamespaceUse{}}
	if usable := inventory.Usable(u.Range); usable > 0 {
		s.Usable = &usable
	}
	if percent, ok := inventory.FullPercent(u); ok {
		s.Percent = &percent
	}
	f := inventory.TrendOf(u).Project()
	s.Left = f.Words()
	if left, ok := f.Seconds(); ok {
		s.LeftSeconds = &left
	}
	return s
}

// sweepOf summarises how reading the nodes went.
func sweepOf(nodes []*store.Node, seconds *float64) document.SweepStats {
	s := document.SweepStats{Nodes: len(nodes), FailedBy: []document.ReasonCount{}, Seconds: seconds}
	by := map[introspect.Reason]int{}
	var latencies []float64
	for _, n := range nodes {
		switch {
		case fleet.Failed(n.NodeIPAM):
			s.Failed++
			by[n.Error.Reason]++
		case n.Summary != nil:
			s.Read++
		}
		if n.LatencySeconds != nil {
			latencies = append(latencies, *n.LatencySeconds)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		s.FailedBy = append(s.FailedBy, document.ReasonCount{Reason: reason, Nodes: by[reason]})
	}
	slices.SortStableFunc(s.FailedBy, func(a, b document.ReasonCount) int { return cmp.Compare(b.Nodes, a.Nodes) })
	slices.Sort(latencies)
	s.LatencyP50Seconds, s.LatencyP99Seconds = quantile(latencies, 0.50), quantile(latencies, 0.99)
	return s
}

// quantile returns the q-quantile of sorted values: the smallest value that at least the
// share q of them does not exceed; nil without values.
func quantile(values []float64, q float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	at := max(0, int(math.Ceil(q*float64(len(values))))-1)
	return &values[at]
}
