package sim

import (
	"encoding/binary"
	"net/netip"
)

const (
	reservedLow = 4  // EC2 reserves a subnet's first four addresses and its last
	blockSize   = 16 // addresses in a /28
)

// subnet is the address space of one subnet.
type subnet struct {
	id    string
	az    string
	cidr  netip.Prefix
	tags  map[string]string
	base  uint32
	taken []bool
	used  []int // by aligned /28
	free  int

	foreign []netip.Prefix // in use outside the cluster
}

func newSubnet(id string, cidr netip.Prefix, tags map[string]string) *subnet {
	n := 1 << (32 - cidr.Bits())
	b := cidr.Masked().Addr().As4()
	s := &subnet{
		id: id, cidr: cidr, tags: tags, base: binary.BigEndian.Uint32(b[:]),
		taken: make([]bool, n), used: make([]int, n/blockSize), free: n,
	}
	for i := range reservedLow {
		s.set(i, true)
	}
	s.set(n-1, true)
	return s
}

func (s *subnet) addr(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], s.base+uint32(i))
	return netip.AddrFrom4(b)
}

func (s *subnet) set(i int, taken bool) {
	if s.taken[i] == taken {
		return
	}
	s.taken[i] = taken
	by := 1
	if !taken {
		by = -1
	}
	s.used[i/blockSize] += by
	s.free -= by
}

// mark takes or frees all addresses of a range.
func (s *subnet) mark(p netip.Prefix, taken bool) {
	b := p.Addr().As4()
	first := int(binary.BigEndian.Uint32(b[:]) - s.base)
	for i := first; i < first+1<<(32-p.Bits()); i++ {
		s.set(i, taken)
	}
}

// takeAddresses takes n free addresses, searching from an index and wrapping around; nil if
// there are not enough.
func (s *subnet) takeAddresses(n, from int) []netip.Prefix {
	if s.free < n {
		return nil
	}
	out := make([]netip.Prefix, 0, n)
	for k := 0; k < len(s.taken) && len(out) < n; k++ {
		if i := (from + k) % len(s.taken); !s.taken[i] {
			s.set(i, true)
			out = append(out, netip.PrefixFrom(s.addr(i), 32))
		}
	}
	return out
}

// blocks counts the free aligned /28s.
func (s *subnet) blocks() int {
	n := 0
	for _, used := range s.used {
		if used == 0 {
			n++
		}
	}
	return n
}

// takeBlocks takes n free aligned /28s, searching from an index and wrapping around; nil if
// there are not enough.
func (s *subnet) takeBlocks(n, from int) []netip.Prefix {
	if s.blocks() < n {
		return nil
	}
	out := make([]netip.Prefix, 0, n)
	for k := 0; k < len(s.used) && len(out) < n; k++ {
		if b := (from/blockSize + k) % len(s.used); s.used[b] == 0 {
			p := netip.PrefixFrom(s.addr(b*blockSize), 28)
			s.mark(p, true)
			out = append(out, p)
		}
	}
	return out
}
