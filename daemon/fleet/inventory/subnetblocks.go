package inventory

import (
	"net/netip"
	"slices"

	"cnictl/capacity/limits"
	"cnictl/daemon/fleet/store"
)

// Uses of a /28 in addition to those in store.
const (
	FreeBlock     = store.BlockUse(0xfd) // no address in it is in use
	OthersBlock   = store.BlockUse(0xfe) // only others have addresses in it
	ReservedBlock = store.BlockUse(0xff) // EC2 reserves addresses in it, and no other is in use
)

// blockSize is the number of addresses in a /28.
const blockSize = limits.PrefixSize

// SubnetCell is one /28 of a subnet, the same for commands and screens.
type SubnetCell struct {
	Prefix netip.Prefix
	Use    store.BlockUse // 0 = no node has an address in it: free, or used by others
	Held   int            // addresses of nodes
	Used   int            // of Held, those of pods
	Node   string         // a node that holds some; "" = none
	Others []BlockOwner   // only if EC2's interfaces are known
	Edge   bool           // EC2 reserves addresses in it: it never becomes a prefix
}

// BlockOwner is who has addresses in a /28 or a subnet.
type BlockOwner struct {
	Name      string
	Interface string // eni-…; "" for several
	Addresses int
}

// Taken is the number of addresses of others.
func (c SubnetCell) Taken() (n int) {
	for _, o := range c.Others {
		n += o.Addresses
	}
	return n
}

// Cells returns the /28s of a subnet by their position in its range; nil if the range is not that of a
// VPC subnet.
func SubnetCells(u store.SubnetUse) []SubnetCell {
	if Usable(u.Range) == 0 {
		return nil
	}
	out := make([]SubnetCell, 1<<(smallest-u.Range.Bits()))
	for i := range out {
		out[i].Prefix = PrefixAt(u.Range, i)
	}
	for _, b := range u.Blocks {
		if i, ok := indexOf(u.Range, b.Prefix); ok {
			out[i].Use, out[i].Held, out[i].Used, out[i].Node = b.Use, b.Held, b.Used, b.Node
		}
	}
	for _, i := range []int{0, len(out) - 1} {
		if out[i].Edge = true; out[i].Use == 0 {
			out[i].Use = ReservedBlock
		}
	}
	return out
}

// Count counts the /28s with a given use.
func CountBlocks(cells []SubnetCell, use store.BlockUse) (n int) {
	for _, c := range cells {
		if c.Use == use {
			n++
		}
	}
	return n
}

// FreeBlocks is an upper bound for the number of free /28s: the unknown ones, but no more than the
// free addresses fill. Nil if there is no map.
func FreeBlocks(u store.SubnetUse) *int { return free(u, SubnetCells(u)) }

func free(u store.SubnetUse, cells []SubnetCell) *int {
	if cells == nil {
		return nil
	}
	n := CountBlocks(cells, 0) + CountBlocks(cells, FreeBlock)
	if u.Available != nil {
		n = min(n, max(*u.Available, 0)/blockSize)
	}
	return &n
}

// Fragmented is the number of /28s that single addresses keep from becoming prefixes. Nil if there
// is no map.
func FragmentedBlocks(u store.SubnetUse) *int {
	cells := SubnetCells(u)
	if cells == nil {
		return nil
	}
	spoiled := CountBlocks(cells, store.BlockMixed)
	return &spoiled
}

// PrefixAt returns the prefix of the /28 at a position in a range.
func PrefixAt(r netip.Prefix, i int) netip.Prefix {
	n := number(r.Masked().Addr()) + uint32(i)*blockSize
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), smallest)
}

// indexOf returns the position of a /28 in a range.
func indexOf(r, block netip.Prefix) (int, bool) {
	if !block.IsValid() || !block.Addr().Is4() || !r.Contains(block.Addr()) {
		return 0, false
	}
	return int(number(block.Addr())-number(r.Masked().Addr())) / blockSize, true
}

func number(a netip.Addr) uint32 {
	b := a.Unmap().As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// SubnetMap is a subnet's /28s with all who have addresses in them.
type SubnetMap struct {
	Use      store.SubnetUse
	Cells    []SubnetCell
	Holdings []store.Holding // by address and node
	Seen     bool            // EC2's interfaces are known: nothing is missing
}

// SubnetMapOf returns the map of a subnet as its nodes report it.
func SubnetMapOf(v *store.View, u store.SubnetUse) SubnetMap {
	return SubnetMap{Use: u, Cells: SubnetCells(u), Holdings: v.Holdings(u.ID)}
}

// FreeBlocks is FreeBlocks of the map: exact once EC2's interfaces are known.
func (m SubnetMap) FreeBlocks() *int {
	if m.Seen {
		return new(CountBlocks(m.Cells, FreeBlock))
	}
	return free(m.Use, m.Cells)
}

// In returns what nodes have in a /28.
func (m SubnetMap) In(block netip.Prefix) []store.Holding {
	at := func(h store.Holding, p netip.Prefix) int { return h.Prefix.Compare(p) }
	from, _ := slices.BinarySearchFunc(m.Holdings, block, at)
	to := from
	for to < len(m.Holdings) && m.Holdings[to].Prefix == block {
		to++
	}
	return m.Holdings[from:to]
}

// Unplaced counts the addresses that are in use at an unknown place in the range: those of others, and
// the ENIs' own. Nil if EC2's count is not known.
func (m SubnetMap) Unplaced() *int {
	n := 0
	if m.Seen {
		return &n
	}
	usable := Usable(m.Use.Range)
	if m.Use.Available == nil || usable == 0 {
		return nil
	}
	n = usable - *m.Use.Available
	for _, c := range m.Cells {
		n -= c.Held
	}
	n = max(0, n)
	return &n
}
