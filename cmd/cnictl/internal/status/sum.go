package status

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/causes"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/subnets"
)

// Of sums up a sweep that took the given number of seconds; nil if unknown.
func Of(list document.NodeIPAMList, seconds *float64) document.FleetStatus {
	s := fleet.StatusOf(list)
	for i := range s.Subnets {
		fill(&s.Subnets[i])
	}
	s.Causes = causes.Counts(list.Items)
	s.Sweep = sweepOf(list.Items, seconds)
	return s
}

// fill computes how full a subnet is, as cnictl subnets does.
func fill(s *document.SubnetFill) {
	u := store.SubnetUse{Subnet: s.Subnet}
	if r, err := netip.ParsePrefix(s.CIDR); err == nil {
		u.Range = r.Masked()
	}
	if usable := subnets.Usable(u.Range); usable > 0 {
		s.Usable = &usable
	}
	if percent, ok := subnets.FullPercent(u); ok {
		s.Percent = &percent
	}
	s.Short = subnets.Short(u)
}

// sweepOf summarises how reading the nodes went.
func sweepOf(items []document.NodeIPAM, seconds *float64) document.SweepStats {
	s := document.SweepStats{Nodes: len(items), FailedBy: []document.ReasonCount{}, Seconds: seconds}
	by := map[introspect.Reason]int{}
	var latencies []float64
	for _, n := range items {
		switch {
		case fleet.Failed(n):
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
