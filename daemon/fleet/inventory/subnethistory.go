package inventory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/subnethistory"
)

// sourcesEach is how many nodes are read for each subnet. All that are old enough know the same; the
// second fills in what the first missed while it was down.
const sourcesEach = 2

// HistorySources returns, by name, the nodes to read EC2's earlier counts of the subnets from: for each subnet
// those whose counts go back furthest. Subnets that are known already have none.
func HistorySources(v *store.View, known map[string]bool) []string {
	type source struct {
		node  string
		since time.Time
	}
	of := map[string][]source{}
	for _, n := range v.Nodes {
		if n.Summary == nil {
			continue
		}
		for _, s := range n.Summary.Subnets {
			if s.HistorySince == nil || known[s.ID] {
				continue
			}
			best := append(of[s.ID], source{n.Metadata.Name, *s.HistorySince})
			slices.SortStableFunc(best, func(a, b source) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.node, b.node)) })
			of[s.ID] = best[:min(len(best), sourcesEach)]
		}
	}
	names := map[string]bool{}
	for _, sources := range of {
		for _, s := range sources {
			names[s.node] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// MergeHistories returns the readings of the subnets of a view, by subnet, with those before them that nodes have
// kept: one for each quarter of an hour.
func MergeHistories(v *store.View, docs []introspect.NodeSubnetHistory) map[string]store.Readings {
	out := map[string]store.Readings{}
	for _, u := range v.Subnets {
		var parts []Trend
		for _, d := range docs {
			for _, item := range d.Items {
				if item.Subnet == u.ID && u.AsOf != nil {
					parts = append(parts, kept(item, *u.AsOf))
				}
			}
		}
		spread := slices.CompactFunc(JoinTrends(parts...), func(a, b Reading) bool {
			return a.At.Truncate(subnethistory.Apart).Equal(b.At.Truncate(subnethistory.Apart))
		})
		out[u.ID] = store.Readings(JoinTrends(spread, Trend(u.Readings)))
	}
	return out
}

// kept returns the readings of a document before a time, as many as a daemon keeps. What the clock of a
// node was wrong about is left out.
func kept(of introspect.SubnetReadings, before time.Time) (out Trend) {
	for at, free := range of.All() {
		if !at.Before(before) {
			break
		}
		if at.After(before.Add(-2*subnethistory.Span)) && len(out) < subnethistory.Most {
			out = append(out, Reading{At: at, Free: free})
		}
	}
	return out
}
