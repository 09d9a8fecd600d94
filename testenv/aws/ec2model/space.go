package ec2model

import (
	"encoding/binary"
	"net/netip"

	"cnictl/capacity/subnet"
)

// BlockSize is the number of addresses in a /28, which EC2 gives only aligned and whole.
const BlockSize = 16

// Reserved is the number of addresses of a subnet that EC2 keeps: reservedLow are its first (network,
// router, DNS, future use), the other its last.
const (
	Reserved    = subnet.Reserved
	reservedLow = Reserved - 1
)

// Space is the IPv4 space of a subnet.
type Space struct {
	base  uint32
	taken []bool  // by address: reserved, or in use
	used  []uint8 // by aligned /28: how many of its addresses are taken
	free  int
	low   int // no address below it is free
}

// NewSpace returns the space of a CIDR, which is empty if the CIDR is invalid.
func NewSpace(cidr netip.Prefix) *Space {
	if !cidr.IsValid() {
		return &Space{}
	}
	n := 1 << (32 - cidr.Bits())
	s := &Space{base: number(cidr.Masked().Addr()), taken: make([]bool, n), used: make([]uint8, (n+BlockSize-1)/BlockSize), free: n}
	for i := range reservedLow {
		s.set(i, true)
	}
	s.set(n-1, true)
	return s
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// Size is the number of addresses, including the reserved ones.
func (s *Space) Size() int { return len(s.taken) }

// Free is the number of addresses that are neither reserved nor taken.
func (s *Space) Free() int { return s.free }

// FreeBlocks is the number of /28s without a taken address.
func (s *Space) FreeBlocks() (n int) {
	for _, used := range s.used {
		if used == 0 {
			n++
		}
	}
	return n
}

func (s *Space) addr(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], s.base+uint32(i))
	return netip.AddrFrom4(b)
}

// within returns the positions of a CIDR, none if it is not in the subnet.
func (s *Space) within(c netip.Prefix) (first, end int) {
	if !c.Addr().Is4() {
		return 0, 0
	}
	i := int64(number(c.Addr())) - int64(s.base)
	n := int64(1) << (32 - c.Bits())
	if i < 0 || i+n > int64(len(s.taken)) {
		return 0, 0
	}
	return int(i), int(i + n)
}

func (s *Space) set(i int, taken bool) {
	if s.taken[i] == taken {
		return
	}
	s.taken[i] = taken
	if taken {
		s.used[i/BlockSize]++
		s.free--
		for s.low < len(s.taken) && s.taken[s.low] {
			s.low++
		}
		return
	}
	s.used[i/BlockSize]--
	s.free++
	s.low = min(s.low, i)
}

// IsFree reports whether every address of c can be given.
func (s *Space) IsFree(c netip.Prefix) bool {
	first, end := s.within(c)
	for i := first; i < end; i++ {
		if s.taken[i] {
			return false
		}
	}
	return end > first
}

// Mark takes or frees all addresses of c.
func (s *Space) Mark(c netip.Prefix, taken bool) {
	first, end := s.within(c)
	for i := first; i < end; i++ {
		s.set(i, taken)
	}
}

// Find returns n free addresses, or fewer if there are not enough: the first ones from a position
// on, then those before it.
func (s *Space) Find(n, from int) []netip.Prefix {
	var out []netip.Prefix
	for k := max(0, s.low-from); k < len(s.taken) && len(out) < min(n, s.free); k++ {
		if i := (from + k) % len(s.taken); !s.taken[i] {
			out = append(out, netip.PrefixFrom(s.addr(i), 32))
		}
	}
	return out
}

// FindLast returns the n last free addresses, or fewer if there are not enough.
func (s *Space) FindLast(n int) []netip.Prefix {
	var out []netip.Prefix
	for i := len(s.taken) - 1; i >= s.low && len(out) < n; i-- {
		if !s.taken[i] {
			out = append(out, netip.PrefixFrom(s.addr(i), 32))
		}
	}
	return out
}

// FindBlocks is Find for /28s, from the one of the position on.
func (s *Space) FindBlocks(n, from int) []netip.Prefix {
	var out []netip.Prefix
	for k := 0; k < len(s.used) && len(out) < n; k++ {
		if b := (from/BlockSize + k) % len(s.used); s.used[b] == 0 {
			out = append(out, netip.PrefixFrom(s.addr(b*BlockSize), 28))
		}
	}
	return out
}

// Space6 is the IPv6 space of a subnet: single addresses come from its first /80, prefixes are
// the /80s after it.
type Space6 struct {
	cidr  netip.Prefix
	taken map[netip.Prefix]bool
}

// NewSpace6 returns the space of a /64.
func NewSpace6(cidr netip.Prefix) *Space6 {
	return &Space6{cidr: cidr.Masked(), taken: make(map[netip.Prefix]bool)}
}

// Mark takes or frees an address or a prefix.
func (s *Space6) Mark(c netip.Prefix, taken bool) {
	if delete(s.taken, c); taken {
		s.taken[c] = true
	}
}

// Find returns the n lowest free addresses.
func (s *Space6) Find(n int) []netip.Prefix {
	var out []netip.Prefix
	b := s.cidr.Addr().As16()
	for low := uint64(reservedLow); len(out) < n; low++ {
		binary.BigEndian.PutUint64(b[8:], low)
		if a := netip.PrefixFrom(netip.AddrFrom16(b), 128); !s.taken[a] {
			out = append(out, a)
		}
	}
	return out
}

// FindBlocks returns the n lowest free /80s, or fewer if there are not enough.
func (s *Space6) FindBlocks(n int) []netip.Prefix {
	var out []netip.Prefix
	b := s.cidr.Addr().As16()
	for block := uint16(1); len(out) < n && block != 0; block++ {
		binary.BigEndian.PutUint16(b[8:], block)
		if c := netip.PrefixFrom(netip.AddrFrom16(b), 80); !s.taken[c] {
			out = append(out, c)
		}
	}
	return out
}
