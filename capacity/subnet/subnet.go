// Package subnet computes how many nodes fit into subnets: the addresses that EC2
// reserves, the /28 blocks that can become prefixes, and the best and worst case of
// fragmentation. It is pure.
package subnet

import (
	"fmt"
	"net/netip"

	"cnictl/capacity/limits"
)

// Reserved is the number of addresses of a subnet that EC2 reserves: network, router, DNS,
// one for future use, and the last (VPC user guide, subnet sizing).
const Reserved = 5

// inEdges is the number of single addresses that fit into the first and the last /28,
// which contain the reserved ones and so cannot become prefixes.
const inEdges = 2*limits.PrefixSize - Reserved

// Subnet is what nodes can take from one subnet.
type Subnet struct {
	CIDR   netip.Prefix
	Free   int // addresses
	Blocks int // complete aligned /28s, none with a reserved address
	Loose  int // free addresses of blocks that cannot become prefixes, such as the first and the last
	Used   int // single addresses that others hold somewhere in either; not free
}

// Parse parses the CIDR of an IPv4 subnet, /16 to /28, and returns the subnet without any
// node.
func Parse(text string) (Subnet, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return Subnet{}, fmt.Errorf("%q is not a CIDR block: want one such as 10.0.0.0/20", text)
	case !p.Addr().Is4():
		return Subnet{}, fmt.Errorf("%s is not an IPv4 block: in IPv6 a subnet's /64 has a /80 for each of 65,536 nodes", p)
	case p.Masked() != p:
		return Subnet{}, fmt.Errorf("%s has bits behind its mask: want %s", p, p.Masked())
	case p.Bits() < 16 || p.Bits() > 28:
		return Subnet{}, fmt.Errorf("%s: EC2 has subnets of /16 to /28 (VPC user guide, subnet sizing)", p)
	}
	return Subnet{CIDR: p, Free: 1<<(32-p.Bits()) - Reserved, Blocks: max(0, 1<<(28-p.Bits())-2), Loose: inEdges}, nil
}

// Without returns the subnet with a number of single addresses held by others.
func (s Subnet) Without(used int) Subnet {
	used = min(used, s.Free)
	s.Free, s.Used = s.Free-used, s.Used+used
	return s
}

// FreeBlocks is the number of blocks that can become prefixes if single addresses share
// blocks.
func (s Subnet) FreeBlocks() int { return max(0, s.Blocks-s.broken(s.Used)) }

// broken is the number of blocks that single addresses break in the best case.
func (s Subnet) broken(singles int) int {
	return (max(0, singles-s.Loose) + limits.PrefixSize - 1) / limits.PrefixSize
}

// Node is what one node takes from a subnet.
type Node struct {
	Interfaces int // each has a primary address
	Addresses  int // secondary ones
	Prefixes   int // /28s
}

// Total is the number of addresses of a node.
func (n Node) Total() int { return n.Interfaces + n.Addresses + n.Prefixes*limits.PrefixSize }

// Fit returns how many nodes fit. Without prefixes, both numbers are the same. With them,
// best assumes that EC2 packs single addresses into blocks that cannot be prefixes anyway,
// and worst that each one spoils another block.
func (s Subnet) Fit(n Node) (worst, best int) {
	if n.Total() <= 0 {
		return 0, 0
	}
	best = s.Free / n.Total()
	if n.Prefixes == 0 {
		return best, best
	}
	singles := n.Interfaces + n.Addresses
	worst = min(best, max(0, s.Blocks-s.Used)/(n.Prefixes+singles))
	for best > worst && best*n.Prefixes+s.broken(s.Used+best*singles) > s.Blocks {
		best--
	}
	return worst, best
}
