package store

import (
	"cmp"
	"net/netip"
	"slices"

	"cnictl/daemon/api/introspect"
)

// subnet is what all nodes have in one subnet.
type subnet struct {
	shown   SubnetUse                    // except Blocks
	reports map[string]introspect.Subnet // what each node reports about the subnet
	blocks  []shared
	dirty   bool    // view is out of date
	view    []Block // never modified once shown
}

// shared is a /28 in which several nodes may have addresses.
type shared struct {
	prefix netip.Prefix
	by     [BlockPrimary + 1]int // number of nodes by kind of use
	held   int
	used   int
	nodes  []string
}

// add adds a node's use of the subnet.
func (s *subnet) add(node string, u use) {
	s.count(u, 1)
	s.blocksOf(node, u, 1)
	s.hear(node, u)
}

// hear records a node's report about the subnet.
func (s *subnet) hear(node string, u use) {
	if u.zone != "" {
		s.shown.Zone = u.zone
	}
	if !u.listed {
		return
	}
	s.reports[node] = u.subnet
	if have, ok := s.reports[s.shown.Node]; s.shown.Node == "" || !ok || newer(u.subnet, node, have, s.shown.Node) {
		s.adopt(node)
	}
}

// change replaces a node's use. It does so in place, which keeps what has not changed and avoids
// a search for the newest report.
func (s *subnet) change(node string, before, now use) {
	s.count(before, -1)
	s.count(now, 1)
	if !now.sameBlocks(before) {
		s.blocksOf(node, before, -1)
		s.blocksOf(node, now, 1)
	}
	if before.listed && (!now.listed || s.shown.Node == node && newer(before.subnet, node, now.subnet, node)) {
		s.forget(node)
	}
	s.hear(node, now)
	if s.shown.Node == node {
		s.adopt(node)
	}
}

// remove subtracts a node's use.
func (s *subnet) remove(node string, u use) {
	s.count(u, -1)
	s.blocksOf(node, u, -1)
	s.forget(node)
}

// forget drops a node's report about the subnet.
func (s *subnet) forget(node string) {
	delete(s.reports, node)
	if s.shown.Node == node {
		best := ""
		for name, word := range s.reports {
			if best == "" || newer(word, name, s.reports[best], best) {
				best = name
			}
		}
		s.adopt(best)
	}
}

func (s *subnet) count(u use, sign int) {
	s.shown.Nodes += sign
	s.shown.ENIs += sign * u.enis
	s.shown.Held += sign * u.held
	s.shown.Wasted += sign * u.wasted
}

// newer orders reports about a subnet by when EC2 answered, then by node name, so that the
// order of the samples does not matter.
func newer(a introspect.Subnet, aNode string, b introspect.Subnet, bNode string) bool {
	switch {
	case a.AsOf == nil && b.AsOf == nil:
		if (a.CIDR == "") != (b.CIDR == "") {
			return a.CIDR != ""
		}
		return aNode < bNode
	case a.AsOf == nil || b.AsOf == nil:
		return b.AsOf == nil
	case !a.AsOf.Equal(*b.AsOf):
		return a.AsOf.After(*b.AsOf)
	}
	return aNode < bNode
}

// adopt uses a node's report about the subnet.
func (s *subnet) adopt(node string) {
	s.shown.Node = node
	id, before := s.shown.ID, s.shown.CIDR
	s.shown.Subnet = s.reports[node]
	s.shown.ID = id
	if s.shown.CIDR == before {
		return
	}
	s.shown.Range = netip.Prefix{}
	if p, err := netip.ParsePrefix(s.shown.CIDR); err == nil {
		s.shown.Range = p.Masked()
	}
}

// blocksOf counts a node's use of the /28s of the subnet.
func (s *subnet) blocksOf(node string, u use, sign int) {
	for _, parts := range u.blocks {
		for _, p := range parts {
			s.block(Block{Prefix: p.prefix(), Use: p.use, Held: int(p.held), Used: int(p.used), Node: node}, sign)
		}
	}
	if u.own.IsValid() {
		s.block(Block{Prefix: u.own, Use: BlockPrimary, Held: 1, Node: node}, sign)
	}
}

// block counts a node's use of one /28.
func (s *subnet) block(b Block, sign int) {
	s.dirty = true
	i, found := slices.BinarySearchFunc(s.blocks, b.Prefix, func(have shared, p netip.Prefix) int { return have.prefix.Compare(p) })
	if !found {
		s.blocks = slices.Insert(s.blocks, i, shared{prefix: b.Prefix})
	}
	have := &s.blocks[i]
	have.by[b.Use] += sign
	have.held += sign * b.Held
	have.used += sign * b.Used
	at, known := slices.BinarySearch(have.nodes, b.Node)
	switch {
	case sign > 0:
		have.nodes = slices.Insert(have.nodes, at, b.Node)
	case known:
		have.nodes = slices.Delete(have.nodes, at, at+1)
	}
	if len(have.nodes) == 0 {
		s.blocks = slices.Delete(s.blocks, i, i+1)
	}
}

// use returns the subnet as a view shows it.
func (s *subnet) use() SubnetUse {
	if s.dirty {
		s.dirty, s.view = false, slices.Grow[[]Block](nil, len(s.blocks))
		for _, b := range s.blocks {
			shown := Block{Prefix: b.prefix, Held: b.held, Used: b.used, Node: b.nodes[0]}
			for use := BlockPrimary; use >= BlockPrefix; use-- {
				if b.by[use] > 0 {
					shown.Use = use
				}
			}
			s.view = append(s.view, shown)
		}
	}
	out := s.shown
	out.Blocks = s.view
	return out
}

// subnets are all subnets, by ID.
type subnets []*subnet

func (all *subnets) of(id string) *subnet {
	i, found := slices.BinarySearchFunc(*all, id, func(s *subnet, id string) int { return cmp.Compare(s.shown.ID, id) })
	if !found {
		s := &subnet{reports: map[string]introspect.Subnet{}}
		s.shown.ID = id
		*all = slices.Insert(*all, i, s)
	}
	return (*all)[i]
}

// replace replaces a node's uses.
func (all *subnets) replace(node string, before, now []use) {
	for _, u := range now {
		s := all.of(u.subnet.ID)
		if i := slices.IndexFunc(before, func(b use) bool { return b.subnet.ID == u.subnet.ID }); i >= 0 {
			s.change(node, before[i], u)
		} else {
			s.add(node, u)
		}
	}
	for _, b := range before {
		if slices.ContainsFunc(now, func(u use) bool { return u.subnet.ID == b.subnet.ID }) {
			continue
		}
		s := all.of(b.subnet.ID)
		if s.remove(node, b); s.shown.Nodes == 0 {
			i := slices.Index(*all, s)
			*all = slices.Delete(*all, i, i+1)
		}
	}
}
