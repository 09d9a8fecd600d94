package store

import (
	"net/netip"
	"slices"

	"cnictl/daemon/api/introspect"
)

// place is where an ENI is and which /28s it has addresses in. An ENI never changes its
// subnet, so what one reading of the ENIs told holds for later samples without them.
type place struct {
	eni    string
	subnet string
	blocks []Block // as of the last reading of its addresses, by address
}

// use is what one node has in one subnet.
type use struct {
	subnet introspect.Subnet // Available and AsOf null: the node only has ENIs there
	zone   string
	enis   int
	held   int
	wasted int
	blocks []Block
}

// place says where the ENIs are, and what that makes of the subnets.
func (n *Node) place(before *Node) {
	if !n.Known {
		return
	}
	switch {
	case n.NodeIPAM.ENIs != nil:
		n.places = make([]place, 0, len(n.NodeIPAM.ENIs))
		for _, e := range n.NodeIPAM.ENIs {
			n.places = append(n.places, place{eni: e.ID, subnet: e.SubnetID, blocks: blocksOf(n.Metadata.Name, e)})
		}
	case before != nil:
		n.places = before.places
	}
	zone := ""
	if n.Object != nil {
		zone = n.Object.Zone
	}
	for _, s := range n.Summary.Subnets {
		if s.ID != "" && n.use(s.ID) == nil {
			n.uses = append(n.uses, use{subnet: s, zone: zone})
		}
	}
	n.inSubnets(zone)
	n.primaryAddress()
}

// inSubnets adds the ENIs up by subnet: those that the sample tells of, else those that
// the summary counts.
func (n *Node) inSubnets(zone string) {
	count := func(id string, p *place, total, free int) {
		subnet := ""
		if p != nil {
			subnet = p.subnet
		}
		if subnet == "" && len(n.Summary.Subnets) == 1 {
			subnet = n.Summary.Subnets[0].ID
		}
		if subnet == "" {
			return
		}
		u := n.use(subnet)
		if u == nil {
			n.uses = append(n.uses, use{subnet: introspect.Subnet{ID: subnet}, zone: zone})
			u = &n.uses[len(n.uses)-1]
		}
		u.enis++
		u.held += total + 1
		u.wasted += free
		if p != nil {
			u.blocks = append(u.blocks, p.blocks...)
		}
	}
	if n.NodeIPAM.ENIs != nil {
		for i, e := range n.NodeIPAM.ENIs {
			count(e.ID, &n.places[i], e.Total, e.Free)
		}
		return
	}
	for _, e := range n.Summary.ENIs {
		var at *place
		if i := slices.IndexFunc(n.places, func(p place) bool { return p.eni == e.ID }); i >= 0 {
			at = &n.places[i]
		} else if e.SubnetID != "" {
			at = &place{subnet: e.SubnetID}
		}
		count(e.ID, at, e.Total, e.Free)
	}
}

func (n *Node) use(subnet string) *use {
	for i := range n.uses {
		if n.uses[i].subnet.ID == subnet {
			return &n.uses[i]
		}
	}
	return nil
}

// primaryAddress adds the node's own address, the one primary address that is known, to
// the subnet that it is of.
func (n *Node) primaryAddress() {
	if n.Object == nil {
		return
	}
	addr, err := netip.ParseAddr(n.Object.InternalIP)
	if err != nil || !addr.Is4() {
		return
	}
	for i := range n.uses {
		u := &n.uses[i]
		if r, err := netip.ParsePrefix(u.subnet.CIDR); err == nil && r.Contains(addr) && u.enis > 0 {
			u.blocks = append(u.blocks, Block{Prefix: blockOf(addr), Use: BlockPrimary, Held: 1, Node: n.Metadata.Name})
			return
		}
	}
}

// blockOf is the /28 of an address.
func blockOf(a netip.Addr) netip.Prefix {
	p, err := a.Prefix(28)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// blocksOf are the /28s that an ENI has something in, by address.
func blocksOf(node string, e introspect.NodeENI) []Block {
	var blocks []Block
	for _, c := range e.CIDRs {
		if !c.CIDR.Addr().Is4() || c.CIDR.Bits() < 28 {
			continue
		}
		b := Block{Prefix: blockOf(c.CIDR.Addr()), Use: BlockMixed, Held: c.Total, Used: c.Assigned, Node: node}
		if c.CIDR.Bits() == 28 {
			b.Use = BlockPrefix
		}
		blocks = append(blocks, b)
	}
	slices.SortStableFunc(blocks, func(a, b Block) int { return a.Prefix.Compare(b.Prefix) })
	return slices.Clip(merged(blocks))
}

// merged joins the neighbours of a sorted list that are of one /28.
func merged(blocks []Block) []Block {
	out := blocks[:0]
	for _, b := range blocks {
		if len(out) > 0 && out[len(out)-1].Prefix == b.Prefix {
			last := &out[len(out)-1]
			last.Use = min(last.Use, b.Use) // a prefix fills it, a single address spoils it
			last.Held += b.Held
			last.Used += b.Used
			continue
		}
		out = append(out, b)
	}
	return out
}
