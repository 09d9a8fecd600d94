package fakeaws

import (
	"encoding/binary"
	"net/netip"
)

const (
	reservedLow  = 4  // EC2 keeps a subnet's first four addresses (network, router, DNS, future use) …
	reservedHigh = 1  // … and its last (broadcast)
	blockSize    = 16 // addresses in a /28
)

// pool4 is the IPv4 space of a subnet.
type pool4 struct {
	base  uint32
	taken []bool // by address: reserved, owned or occupied
	used  []int  // by aligned /28: how many of its addresses are taken
	free  int
	low   int // no address below it is free
}

// newPool4 returns the space of a CIDR, which is empty if the CIDR is invalid.
func newPool4(cidr netip.Prefix) *pool4 {
	if !cidr.IsValid() {
		return &pool4{}
	}
	n := 1 << (32 - cidr.Bits())
	p := &pool4{base: number4(cidr.Masked().Addr()), taken: make([]bool, n), used: make([]int, (n+blockSize-1)/blockSize), free: n}
	for i := range reservedLow {
		p.set(i, true)
	}
	p.set(n-1, true)
	return p
}

func number4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func (p *pool4) addr(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], p.base+uint32(i))
	return netip.AddrFrom4(b)
}

// index returns the address's index in the subnet, −1 outside.
func (p *pool4) index(a netip.Addr) int {
	if !a.Is4() {
		return -1
	}
	i := int64(number4(a)) - int64(p.base)
	if i < 0 || i >= int64(len(p.taken)) {
		return -1
	}
	return int(i)
}

func (p *pool4) set(i int, taken bool) {
	if p.taken[i] == taken {
		return
	}
	p.taken[i] = taken
	if taken {
		p.used[i/blockSize]++
		p.free--
		for p.low < len(p.taken) && p.taken[p.low] {
			p.low++
		}
		return
	}
	p.used[i/blockSize]--
	p.free++
	p.low = min(p.low, i)
}

// isFree reports whether every address of c can be assigned.
func (p *pool4) isFree(c netip.Prefix) bool {
	first := p.index(c.Addr())
	if first < 0 {
		return false
	}
	for i := first; i < first+1<<(32-c.Bits()); i++ {
		if i >= len(p.taken) || p.taken[i] {
			return false
		}
	}
	return true
}

func (p *pool4) mark(c netip.Prefix, taken bool) {
	first := p.index(c.Addr())
	for i := first; i < first+1<<(32-c.Bits()); i++ {
		p.set(i, taken)
	}
}

// lowest returns the n lowest free addresses, or fewer if there are not enough.
func (p *pool4) lowest(n int) []netip.Prefix {
	var out []netip.Prefix
	for i := p.low; i < len(p.taken) && len(out) < n; i++ {
		if !p.taken[i] {
			out = append(out, single(p.addr(i)))
		}
	}
	return out
}

// lowestBlocks returns the n lowest free aligned /28s, or fewer if there are not enough.
func (p *pool4) lowestBlocks(n int) []netip.Prefix {
	var out []netip.Prefix
	for b := range p.used {
		if len(out) == n {
			break
		}
		if p.used[b] == 0 {
			out = append(out, netip.PrefixFrom(p.addr(b*blockSize), 28))
		}
	}
	return out
}

// pool6 is the IPv6 space of a subnet: single addresses come from its first /80,
// prefixes are the /80s after it.
type pool6 struct {
	cidr  netip.Prefix
	taken map[netip.Prefix]bool
}

func newPool6(cidr netip.Prefix) *pool6 {
	return &pool6{cidr: cidr.Masked(), taken: make(map[netip.Prefix]bool)}
}

func (p *pool6) lowest(n int) []netip.Prefix {
	var out []netip.Prefix
	b := p.cidr.Addr().As16()
	for low := uint64(reservedLow); len(out) < n; low++ {
		binary.BigEndian.PutUint64(b[8:], low)
		if a := single(netip.AddrFrom16(b)); !p.taken[a] {
			out = append(out, a)
		}
	}
	return out
}

func (p *pool6) lowestBlocks(n int) []netip.Prefix {
	var out []netip.Prefix
	b := p.cidr.Addr().As16()
	for block := uint16(1); len(out) < n && block != 0; block++ {
		binary.BigEndian.PutUint16(b[8:], block)
		if c := netip.PrefixFrom(netip.AddrFrom16(b), 80); !p.taken[c] {
			out = append(out, c)
		}
	}
	return out
}
