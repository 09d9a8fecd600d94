package bundle

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
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

// ranges records the length of the shortest range in a network.
func (a *Anonymizer) ranges(p netip.Prefix) {
	if !p.IsValid() {
		return
	}
	net, ok := network(p.Addr().Unmap())
	if was := a.shortest[net]; ok && p.Bits() > net.Bits() && (was == 0 || p.Bits() < was) {
		a.shortest[net] = p.Bits()
	}
}

// address flips some of the bits between those of its network and those of its shortest range,
// always the first of them.
func (a *Anonymizer) address(address netip.Addr) netip.Addr {
	if address.Is4In6() {
		return netip.AddrFrom16(a.address(address.Unmap()).As16())
	}
	net, ok := network(address)
	if !ok {
		return a.linkLocal(address)
	}
	b := address.AsSlice()
	end, fixed := a.ends[net]
	if !fixed { // later documents may have shorter ranges: an address stays the same in all
		end = min(cmp.Or(a.shortest[net], 64), len(b)*8*3/4, 64)
		a.ends[net] = end
	}
	sum, err := hex.DecodeString(a.sum(net.String()))
	if err != nil {
		return address
	}
	for bit := net.Bits(); bit < end; bit++ {
		if bit == net.Bits() || sum[bit/8]>>(bit%8)&1 == 1 {
			b[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
	out, _ := netip.AddrFromSlice(b)
	return out.WithZone(address.Zone())
}

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
