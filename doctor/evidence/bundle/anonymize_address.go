package bundle

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
)

// mac replaces a MAC address, but keeps its first byte, which shows who made the interface.
func (a *Anonymizer) mac(mac string) string {
	mac = strings.ToLower(mac)
	if mac == "00:00:00:00:00:00" || mac == "ff:ff:ff:ff:ff:ff" {
		return mac
	}
	sum := a.sum(mac)
	return mac[:2] + ":" + sum[:2] + ":" + sum[2:4] + ":" + sum[4:6] + ":" + sum[6:8] + ":" + sum[8:10]
}

// network returns the range that an address stays in; its length is how much of the address is
// kept. It returns false for an address that reveals nothing and is kept as it is.
func network(address netip.Addr) (netip.Prefix, bool) {
	bits := 16
	if address.Is4() {
		b := address.As4()
		switch {
		case b[0] == 0, b[0] == 127, b[0] >= 224, b[0] == 169 && b[1] == 254:
			return netip.Prefix{}, false
		case b[0] == 10:
			bits = 8
		case b[0] == 172 && b[1]&0xf0 == 16:
			bits = 12
		case b[0] == 100 && b[1]&0xc0 == 64:
			bits = 10
		case b[0] != 100 && b[0] != 169 && b[0] != 172 && b[0] != 192 && b[0] != 198 && b[0] != 203:
			bits = 8
		}
	} else {
		b := address.As16()
		if b[0]&0xe0 != 0x20 && b[0]&0xfe != 0xfc || netip.MustParsePrefix("fd00:ec2::/32").Contains(address) {
			return netip.Prefix{}, false
		}
	}
	p, err := address.WithZone("").Prefix(bits)
	return p, err == nil
}

// ranges records a range whose first address stays the first: one that is as small as a subnet.
// Where it is larger, that would keep bits of many addresses.
func (a *Anonymizer) ranges(p netip.Prefix) {
	if _, ok := network(p.Addr()); ok && p.Addr().Is4() && p.Bits() > 16 && p.Bits() < 24 {
		a.subnets[p.Masked()] = true
	}
}

// address replaces the bits between those of the address's network and the last ones. Whether a
// bit is flipped depends on the key and on all bits before it: addresses share as many bits
// afterwards as before, so that ranges hold what they held, but a replaced address tells nothing
// about those of other ranges. Zeros that follow the beginning of a subnet stay.
func (a *Anonymizer) address(address netip.Addr) netip.Addr {
	if address.Is4In6() {
		return netip.AddrFrom16(a.address(address.Unmap()).As16())
	}
	if nat64().Contains(address) { // has an IPv4 address at its end
		b := address.As16()
		v4 := a.address(netip.AddrFrom4([4]byte(b[12:]))).As4()
		copy(b[12:], v4[:])
		return netip.AddrFrom16(b).WithZone(address.Zone())
	}
	net, ok := network(address)
	if !ok {
		return a.linkLocal(address)
	}
	b, end := address.AsSlice(), 64
	if address.Is4() {
		end = 24
	}
	flipped, first := false, false
	for bit := net.Bits(); bit < end; bit++ {
		before, _ := address.WithZone("").Prefix(bit)
		first = first || a.subnets[before]
		flip, chosen := a.flips[before]
		if !chosen { // later documents may have more subnets: an address stays the same in all
			last := bit == end-1 || a.ends(before)
			flip = !first && (!flipped && last || a.sum("bit after " + before.String())[0] >= '8')
			a.flips[before] = flip
		}
		mask := byte(0x80) >> (bit % 8)
		first = first && b[bit/8]&mask == 0
		if flip {
			b[bit/8] ^= mask
			flipped = true
		}
	}
	out, _ := netip.AddrFromSlice(b)
	return out.WithZone(address.Zone())
}

// ends reports whether a subnet is half of p: no later bit of its first address is flipped.
func (a *Anonymizer) ends(p netip.Prefix) bool {
	low := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	b := p.Addr().AsSlice()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	upper, _ := netip.AddrFromSlice(b)
	return a.subnets[low] || a.subnets[netip.PrefixFrom(upper, p.Bits()+1)]
}

// prefix replaces the address of a range. That of a whole range is its first.
func (a *Anonymizer) prefix(p netip.Prefix) netip.Prefix {
	if !p.IsValid() {
		return p
	}
	if net, ok := network(p.Addr()); p == p.Masked() && !p.Addr().Is4In6() {
		if ok && p.Bits() <= net.Bits() {
			return p // of all networks that begin like this
		}
		return netip.PrefixFrom(a.address(p.Addr()), p.Bits()).Masked()
	}
	return netip.PrefixFrom(a.address(p.Addr()), p.Bits())
}

// nat64 is RFC 6052's well-known prefix.
var nat64 = sync.OnceValue(func() netip.Prefix { return netip.MustParsePrefix("64:ff9b::/96") })

// linkLocal replaces the MAC address in an address that was made from one.
func (a *Anonymizer) linkLocal(address netip.Addr) netip.Addr {
	b := address.As16()
	if !address.IsLinkLocalUnicast() || address.Is4() || b[11] != 0xff || b[12] != 0xfe {
		return address
	}
	var m [6]byte
	text := a.mac(fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[8]^2, b[9], b[10], b[13], b[14], b[15]))
	if _, err := fmt.Sscanf(text, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]); err != nil {
		return address
	}
	b[8], b[9], b[10], b[13], b[14], b[15] = m[0]^2, m[1], m[2], m[3], m[4], m[5]
	return netip.AddrFrom16(b).WithZone(address.Zone())
}
