package subnets

import (
	"net/netip"
	"slices"

	"cnictl/daemon/fleet/store"
)

// Reserved is the use of a /28 in which EC2 keeps addresses, beside those of the store.
const Reserved = store.BlockUse(0xff)

// blockSize is how many addresses a /28 has.
const blockSize = 16

// Blocks lays the /28s of a subnet out by their place in its range: 0 where nothing is
// known; null where the range is not one of a VPC.
func Blocks(u store.SubnetUse) []store.BlockUse {
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
			out[i] = Reserved
		}
	}
	return out
}

// Count counts the blocks of a use.
func Count(blocks []store.BlockUse, use store.BlockUse) (n int) {
	for _, b := range blocks {
		if b == use {
			n++
		}
	}
	return n
}

// Free is how many /28s may be free, at most: of the unknown ones no more than the free
// addresses fill. Null where there is no map.
func Free(u store.SubnetUse) *int {
	blocks := Blocks(u)
	if blocks == nil {
		return nil
	}
	free := Count(blocks, 0)
	if u.Available != nil {
		free = min(free, max(*u.Available, 0)/blockSize)
	}
	return &free
}

// Spoiled is how many /28s single addresses keep from being prefixes. Null where there is
// no map.
func Spoiled(u store.SubnetUse) *int {
	blocks := Blocks(u)
	if blocks == nil {
		return nil
	}
	spoiled := Count(blocks, store.BlockMixed)
	return &spoiled
}

// BlockAt is the /28 at a place in the range.
func BlockAt(u store.SubnetUse, i int) (store.Block, bool) {
	at := PrefixAt(u.Range, i)
	j, ok := slices.BinarySearchFunc(u.Blocks, at, func(b store.Block, p netip.Prefix) int { return b.Prefix.Addr().Compare(p.Addr()) })
	if !ok {
		return store.Block{}, false
	}
	return u.Blocks[j], true
}

// PrefixAt is the /28 at a place in a range.
func PrefixAt(r netip.Prefix, i int) netip.Prefix {
	n := number(r.Masked().Addr()) + uint32(i)*blockSize
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), smallest)
}

// indexOf is the place of a /28 in a range.
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
