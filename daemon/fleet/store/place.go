package store

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
)

// place is the location of an ENI and the /28s in which it has addresses. An ENI never changes
// its subnet, so a place stays valid for later samples without ENIs.
type place struct {
	eni    introspect.NodeENI // without CIDRs; its counts are from when the ENIs were read
	blocks []part             // by address
}

// use is what one node has in one subnet.
type use struct {
	subnet introspect.Subnet
	listed bool // the node reports on the subnet; otherwise it only has ENIs there
	zone   string
	enis   int
	held   int
	wasted int
	blocks [][]part     // of each of its ENIs; shared with places
	own    netip.Prefix // the /28 of the node's own address; zero if that is in another subnet
}

// part is what an ENI has in one /28.
type part struct {
	base uint32 // address of the /28
	use  BlockUse
	held uint8
	used uint8
}

func (p part) prefix() netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], p.base)
	return netip.PrefixFrom(netip.AddrFrom4(a), 28)
}

// sameBlocks reports that a node's use of the /28s of a subnet is unchanged.
func (u use) sameBlocks(before use) bool {
	return u.own == before.own && slices.EqualFunc(u.blocks, before.blocks, slices.Equal[[]part])
}

// place finds out where the ENIs are and derives the use of the subnets.
func (n *Node) place(before *Node, at time.Time, answered bool) {
	if !n.Known {
		return
	}
	if before != nil && !answered {
		at = before.addresses.at
	}
	switch {
	case n.NodeIPAM.ENIs != nil:
		n.places, n.addresses = make([]place, 0, len(n.NodeIPAM.ENIs)), addressesOf(n.NodeIPAM.ENIs, at)
		for _, e := range n.NodeIPAM.ENIs {
			blocks := blocksOf(e)
			e.CIDRs = nil
			n.places = append(n.places, place{eni: e, blocks: blocks})
		}
	case before != nil:
		n.places, n.addresses = before.places, before.addresses
	}
	zone := ""
	if n.Object != nil {
		zone = n.Object.Zone
	}
	for _, s := range n.Summary.Subnets {
		if s.ID != "" && n.use(s.ID) == nil {
			n.uses = append(n.uses, use{subnet: s, listed: true, zone: zone})
		}
	}
	n.inSubnets(zone)
	n.primaryAddress()
}

// inSubnets sums up the ENIs by subnet: those in the sample, else those that the summary
// counts.
func (n *Node) inSubnets(zone string) {
	count := func(id string, p *place, total, free int) {
		subnet := ""
		if p != nil {
			subnet = p.eni.SubnetID
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
		if p != nil && len(p.blocks) > 0 {
			u.blocks = append(u.blocks, p.blocks)
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
		if i := slices.IndexFunc(n.places, func(p place) bool { return p.eni.ID == e.ID }); i >= 0 {
			at = &n.places[i]
		} else if e.SubnetID != "" {
			at = &place{eni: introspect.NodeENI{SubnetID: e.SubnetID}}
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

// primaryAddress adds the node's own address, the only primary address known, to its subnet.
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
			u.own = blockOf(addr)
			return
		}
	}
}

// blockOf returns the /28 of an address.
func blockOf(a netip.Addr) netip.Prefix {
	p, err := a.Prefix(28)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// blocksOf returns the /28s that an ENI uses, by address.
func blocksOf(e introspect.NodeENI) []part {
	var parts []part
	for _, c := range e.CIDRs {
		if !c.CIDR.Addr().Is4() || c.CIDR.Bits() < 28 {
			continue
		}
		base := blockOf(c.CIDR.Addr()).Addr().As4()
		p := part{base: binary.BigEndian.Uint32(base[:]), use: BlockMixed, held: few(c.Total), used: few(c.Assigned)}
		if c.CIDR.Bits() == 28 {
			p.use = BlockPrefix
		}
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.base, b.base) })
	return slices.Clone(merged(parts))
}

// few caps what a node reports about a /28, which has 16 addresses.
func few(n int) uint8 { return uint8(min(max(0, n), 16)) }

// merged merges neighbours in the same /28 in a sorted list.
func merged(parts []part) []part {
	out := parts[:0]
	for _, p := range parts {
		if len(out) > 0 && out[len(out)-1].base == p.base {
			last := &out[len(out)-1]
			last.use = min(last.use, p.use) // a prefix fills a /28, a single address breaks it up
			last.held, last.used = few(int(last.held)+int(p.held)), few(int(last.used)+int(p.used))
			continue
		}
		out = append(out, p)
	}
	return out
}
