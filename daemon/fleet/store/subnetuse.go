package store

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"cnictl/daemon/api/introspect"
)

// SubnetUse is a subnet as the fleet sees it.
type SubnetUse struct {
	introspect.Subnet
	Range  netip.Prefix // Subnet.CIDR parsed; zero: not known
	Zone   string       // of the nodes in it, "" = not known
	Nodes  int          // that have an ENI there or may make one
	ENIs   int
	Held   int // addresses of pools there, and a primary address for each ENI
	Wasted int // of Held, free ones
	// Blocks are the /28s of Range that are known of, by address; see [Block].
	Blocks []Block
}

// BlockUse says what is known of one /28.
type BlockUse uint8

// What a /28 can be. One of which nothing is known has no Block.
const (
	BlockUnknown  BlockUse = iota // free, or another's
	BlockPrefix                   // a prefix of ours
	BlockMixed                    // single addresses of ours: no prefix can be had there
	BlockPrimary                  // primary addresses of ENIs of ours alone
	BlockReserved                 // EC2 keeps addresses in it: no prefix can be had there
	blockUses     = iota
)

// Block is one /28 of a subnet.
type Block struct {
	Prefix netip.Prefix
	Use    BlockUse
	Held   int // addresses of ours in it
	Used   int // of them assigned to pods
	Node   string
}

// Of an IPv4 subnet of a VPC: EC2 keeps the first four addresses and the last one.
const (
	reservedAddresses = 5
	largestRange      = 16 // bits
	smallestRange     = 28
	blockBits         = 28
	blockAddresses    = 16
)

// nearlyFull is the share that is taken of a subnet that is about to run out.
const nearlyFull = 0.95

// Size is how many addresses EC2 gives out of the subnet; 0 where the range is not known
// or is none that an IPv4 subnet of a VPC can have (/16 to /28).
func (u SubnetUse) Size() int {
	if !u.Range.IsValid() || !u.Range.Addr().Is4() || u.Range.Bits() < largestRange || u.Range.Bits() > smallestRange {
		return 0
	}
	return 1<<(32-u.Range.Bits()) - reservedAddresses
}

// Full is the share of the subnet that is taken, from 0 to 1; ok is false while it is not
// known.
func (u SubnetUse) Full() (share float64, ok bool) {
	size := u.Size()
	if size == 0 || u.Available == nil {
		return 0, false
	}
	return min(max(1-float64(*u.Available)/float64(size), 0), 1), true
}

// Short tells that the subnet is about to run out: no more than a twentieth is free.
func (u SubnetUse) Short() bool {
	full, ok := u.Full()
	return ok && full >= nearlyFull || u.Available != nil && *u.Available == 0
}

// Others is how many addresses are taken by others than the nodes read: load balancers,
// databases, nodes that were not read. Null while it is not known.
func (u SubnetUse) Others() *int {
	size := u.Size()
	if size == 0 || u.Available == nil {
		return nil
	}
	others := size - *u.Available - u.Held
	if others < 0 {
		return nil
	}
	return &others
}

// Map is what is known of each /28 of the range, by address; null where Size is 0.
func (u SubnetUse) Map() []BlockUse {
	if u.Size() == 0 {
		return nil
	}
	uses := make([]BlockUse, 1<<(blockBits-u.Range.Bits()))
	for _, b := range u.Blocks {
		if i, ok := u.Index(b.Prefix); ok {
			uses[i] = b.Use
		}
	}
	for _, i := range []int{0, len(uses) - 1} {
		if uses[i] == BlockUnknown {
			uses[i] = BlockReserved
		}
	}
	return uses
}

// BlockCounts are how many /28s of a subnet are what.
type BlockCounts struct {
	Unknown  int // free, or another's: a prefix may be had there
	Prefix   int
	Mixed    int
	Primary  int
	Reserved int
}

// CountBlocks counts the /28s of the range; ok is false where Size is 0.
func (u SubnetUse) CountBlocks() (_ BlockCounts, ok bool) {
	uses := u.Map()
	var n [blockUses]int
	for _, use := range uses {
		n[use]++
	}
	return BlockCounts{n[BlockUnknown], n[BlockPrefix], n[BlockMixed], n[BlockPrimary], n[BlockReserved]}, uses != nil
}

// Index is the place of a /28 in Map; ok is false of one outside.
func (u SubnetUse) Index(block netip.Prefix) (_ int, ok bool) {
	if u.Size() == 0 || !block.IsValid() || !u.Range.Contains(block.Addr()) {
		return 0, false
	}
	return int(ipv4Number(block.Addr())-ipv4Number(u.Range.Masked().Addr())) / blockAddresses, true
}

// Place is the /28 at a place in Map.
func (u SubnetUse) Place(i int) netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], ipv4Number(u.Range.Masked().Addr())+uint32(i)*blockAddresses)
	return netip.PrefixFrom(netip.AddrFrom4(a), blockBits)
}

// Block is what is known of the /28 at a place in Map; ok is false where nothing is.
func (u SubnetUse) Block(i int) (_ Block, ok bool) {
	at, ok := slices.BinarySearchFunc(u.Blocks, u.Place(i), func(b Block, p netip.Prefix) int { return b.Prefix.Addr().Compare(p.Addr()) })
	if !ok {
		return Block{}, false
	}
	return u.Blocks[at], true
}

func ipv4Number(a netip.Addr) uint32 {
	b := a.Unmap().As4()
	return binary.BigEndian.Uint32(b[:])
}
