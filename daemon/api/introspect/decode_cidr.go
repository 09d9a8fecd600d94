package introspect

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
)

func parseAddr(s string) (netip.Addr, error) {
	addr, err := ParseAddr(s)
	return addr.Unmap(), err
}

// prefix returns the CIDR in its canonical form, from the Cidr member, or from the map key
// if that is missing.
func (c wireCIDR) prefix(key string) (netip.Prefix, error) {
	if c.Cidr == nil || *c.Cidr == (wireIPNet{}) {
		p, err := netip.ParsePrefix(key)
		if err != nil {
			return netip.Prefix{}, errors.New("parse CIDR: it is not a CIDR")
		}
		return checkedPrefix(p)
	}
	addr, err := netip.ParseAddr(c.Cidr.IP)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse CIDR: %.60q is not an address", c.Cidr.IP)
	}
	addr = addr.Unmap()
	mask, err := base64.StdEncoding.DecodeString(c.Cidr.Mask)
	ones, ok := maskBits(mask)
	if err != nil || !ok || len(mask)*8 != addr.BitLen() {
		return netip.Prefix{}, errors.New("its mask is not a network mask")
	}
	return checkedPrefix(netip.PrefixFrom(addr, ones))
}

// checkedPrefix accepts what EC2 assigns to an interface: one address, a /28, a /80.
func checkedPrefix(p netip.Prefix) (netip.Prefix, error) {
	known := p.IsSingleIP() || p.Addr().Is4() && p.Bits() == 28 || p.Addr().Is6() && p.Bits() == 80
	if !known || p.Addr().Zone() != "" || p != p.Masked() {
		return netip.Prefix{}, errors.New("neither an address nor an aligned /28 or /80")
	}
	return p, nil
}

// maskBits counts the leading ones of a mask without holes.
func maskBits(mask []byte) (int, bool) {
	ones := 0
	for i, b := range mask {
		n := bits.LeadingZeros8(^b)
		ones += n
		if n < 8 {
			if b<<n != 0 {
				return 0, false
			}
			for _, rest := range mask[i+1:] {
				if rest != 0 {
					return 0, false
				}
			}
			break
		}
	}
	return ones, len(mask) == 4 || len(mask) == 16
}
