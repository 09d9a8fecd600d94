package store

import (
	"cmp"
	"net/netip"
	"slices"

	"cnictl/daemon/fleet/human"
)

// Holding is what one node has in one /28.
type Holding struct {
	Prefix netip.Prefix
	Node   *Node
	Use    BlockUse
	Held   int
	Used   int // of Held, those assigned to pods
}

// Holdings returns what each node has in each /28 of a subnet, by address and node. A view keeps only
// their sums, as [Block].
func (v *View) Holdings(subnet string) []Holding {
	var out []Holding
	for _, n := range v.Nodes {
		u := n.use(subnet)
		if u == nil {
			continue
		}
		for _, parts := range u.blocks {
			for _, p := range parts {
				out = append(out, Holding{Prefix: p.prefix(), Node: n, Use: p.use, Held: int(p.held), Used: int(p.used)})
			}
		}
		if u.own.IsValid() {
			out = append(out, Holding{Prefix: u.own, Node: n, Use: BlockPrimary, Held: 1})
		}
	}
	return Join(out)
}

// Join sorts by address and node, and joins what the ENIs of a node have in the same /28.
func Join(all []Holding) []Holding {
	slices.SortStableFunc(all, func(a, b Holding) int {
		return cmp.Or(a.Prefix.Compare(b.Prefix), human.Natural(a.Node.Metadata.Name, b.Node.Metadata.Name), cmp.Compare(a.Use, b.Use))
	})
	out := all[:0]
	for _, h := range all {
		if n := len(out); n > 0 && out[n-1].Prefix == h.Prefix && out[n-1].Node == h.Node {
			out[n-1].Held, out[n-1].Used = out[n-1].Held+h.Held, out[n-1].Used+h.Used
			continue
		}
		out = append(out, h)
	}
	return out
}

// HeldIn is the number of addresses that a node has in a subnet, with those of its ENIs.
func (n *Node) HeldIn(subnet string) int {
	if u := n.use(subnet); u != nil {
		return u.held
	}
	return 0
}
