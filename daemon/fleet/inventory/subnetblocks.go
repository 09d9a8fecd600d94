package inventory

import (
	"net/netip"
	"slices"

	"cnictl/daemon/fleet/store"
)

// ReservedBlock is the use of a /28 with addresses reserved by EC2, in addition to the uses in store.
const ReservedBlock = store.BlockUse(0xff)

// blockSize is the number of addresses in a /28.
const blockSize = 16

// SubnetBlocks returns the uses of the /28s of a subnet by their position in its range: 0 if unknown;
// nil if the range is not that of a VPC subnet.
func SubnetBlocks(u store.SubnetUse) []store.BlockUse {
	if Usable(u.Range) == 0 {
		return nil
	}
	out := make([]store.BlockUse, 1<<(smallest-u.Range.Bits()))
	for _, b := range u.Blocks {
		if i, ok := indexOf(u.Range, b.Prefix); ok {
			out[i] = b.Use
		}
	}
	for _, i := range []int{0, len(out) - 1} {
		if out[i] == 0 {
			out[i] = ReservedBlock
		}
	}
	return out
}

// CountBlocks counts the blocks with a given use.
func CountBlocks(blocks []store.BlockUse, use store.BlockUse) (n int) {
	for _, b := range blocks {
		if b == use {
			n++
		}
	}
	return n
}

// FreeBlocks is an upper bound for the number of free /28s: the unknown ones, but no more than the
// free addresses fill. Nil if there is no map.
func FreeBlocks(u store.SubnetUse) *int {
	blocks := SubnetBlocks(u)
	if blocks == nil {
		return nil
	}
	free := CountBlocks(blocks, 0)
	if u.Available != nil {
		free = min(free, max(*u.Available, 0)/blockSize)
	}
	return &free
}

// FragmentedBlocks is the number of /28s that single addresses keep from becoming prefixes. Nil if there
// is no map.
func FragmentedBlocks(u store.SubnetUse) *int {
	blocks := SubnetBlocks(u)
	if blocks == nil {
		return nil
	}
	spoiled := CountBlocks(blocks, store.BlockMixed)
	return &spoiled
}

// BlockAt returns the /28 at a position in the range.
func BlockAt(u store.SubnetUse, i int) (store.Block, bool) {
	at := PrefixAt(u.Range, i)
	j, ok := slices.BinarySearchFunc(u.Blocks, at, func(b store.Block, p netip.Prefix) int { return b.Prefix.Addr().Compare(p.Addr()) })
	if !ok {
		return store.Block{}, false
	}
	return u.Blocks[j], true
}

// PrefixAt returns the prefix of the /28 at a position in a range.
func PrefixAt(r netip.Prefix, i int) netip.Prefix {
	n := number(r.Masked().Addr()) + uint32(i)*blockSize
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), smallest)
}

// indexOf returns the position of a /28 in a range.
func indexOf(r, block netip.Prefix) (int, bool) {
	if !block.IsValid() || !r.Contains(block.Addr()) {
		return 0, false
	}
	return int(number(block.Addr())-number(r.Masked().Addr())) / blockSize, true
}

func number(a netip.Addr) uint32 {
	b := a.Unmap().As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}
