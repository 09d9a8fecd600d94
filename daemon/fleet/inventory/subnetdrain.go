package inventory

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
)

// SubnetDrain is the smallest set of nodes whose termination frees blocks of a subnet.
type SubnetDrain struct {
	Want     int
	Possible int            // blocks in which only nodes have addresses, as far as known
	Nodes    []*store.Node  // nil if Want is more than Possible
	Least    int            // no fewer nodes can do it; less than len(Nodes) if time ran out
	Blocks   []netip.Prefix // that are free once they are gone

	Addresses int // of the subnet that go with the nodes, with their ENIs' own
	Pods      int // of the nodes that have an address of a pool
	Warm      int // free addresses of the other nodes, in any subnet
}

// New is how many addresses the other nodes must take for the pods that move, in their subnets. Each
// may break up a free /28.
func (d SubnetDrain) New() int { return max(0, d.Pods-d.Warm) }

// Drain finds the nodes to terminate for want free /28s, until ctx ends; see [Fewest]. Of the other
// nodes only those that take pods count.
func (m SubnetMap) Drain(ctx context.Context, nodes []*store.Node, want int) SubnetDrain {
	d := SubnetDrain{Want: want}
	holders := slices.Clone(nodes)
	// Where it makes no difference for the number of nodes, those with fewer pods are taken.
	slices.SortStableFunc(holders, func(a, b *store.Node) int {
		return cmp.Or(cmp.Compare(a.Assigned, b.Assigned), human.Natural(a.Metadata.Name, b.Metadata.Name))
	})
	number := map[*store.Node]int{}
	for i, n := range holders {
		number[n] = i
	}
	var of [][]int
	var prefixes []netip.Prefix
	for _, c := range m.Cells {
		if c.Edge || c.Held == 0 || len(c.Others) > 0 {
			continue
		}
		var by []int
		for _, h := range m.In(c.Prefix) {
			by = append(by, number[h.Node])
		}
		of, prefixes = append(of, by), append(prefixes, c.Prefix)
	}
	d.Possible = len(of)
	set, least := Fewest(ctx, of, want)
	if set == nil {
		return d
	}
	d.Least = least
	for _, i := range set {
		n := holders[i]
		d.Nodes = append(d.Nodes, n)
		d.Pods += n.Assigned
		d.Addresses += m.HeldBy(n)
	}
	slices.SortFunc(d.Nodes, func(a, b *store.Node) int { return human.Natural(a.Metadata.Name, b.Metadata.Name) })
	for i, by := range of {
		if !slices.ContainsFunc(by, func(n int) bool { return !slices.Contains(set, n) }) {
			d.Blocks = append(d.Blocks, prefixes[i])
		}
	}
	for _, n := range nodes {
		if n.State == document.StateLive && (n.Object == nil || !n.Object.Unschedulable) && !slices.Contains(d.Nodes, n) {
			d.Warm += n.Free
		}
	}
	return d
}

// HeldBy is the number of addresses that a node has in the subnet.
func (m SubnetMap) HeldBy(n *store.Node) (held int) {
	if !m.Seen {
		return n.HeldIn(m.Use.ID)
	}
	for _, h := range m.Holdings {
		if h.Node == n {
			held += h.Held
		}
	}
	return held
}
