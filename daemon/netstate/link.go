package netstate

import (
	"net/netip"
	"strconv"
)

// MAC is an Ethernet address.
type MAC [6]byte

func (m MAC) String() string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 3*len(m)-1)
	for i, v := range m {
		if i > 0 {
			out = append(out, ':')
		}
		out = append(out, digits[v>>4], digits[v&15])
	}
	return string(out)
}

// ParseMAC reads six two-digit hexadecimal numbers separated by colons.
func ParseMAC(s string) (m MAC, ok bool) {
	if len(s) != 3*len(m)-1 {
		return m, false
	}
	for i := range m {
		v, err := strconv.ParseUint(s[3*i:3*i+2], 16, 8)
		if err != nil || i > 0 && s[3*i-1] != ':' {
			return MAC{}, false
		}
		m[i] = byte(v)
	}
	return m, true
}

// LinkLocal returns the IPv6 address that the kernel itself assigns to a link with that MAC
// (EUI-64).
func (m MAC) LinkLocal() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// Link is a link as the kernel lists it.
type Link struct {
	Index  int32
	Name   string
	Kind   string // "veth", ...; empty for hardware
	MAC    MAC
	MTU    int
	Flags  uint32 // Up, Running and other kernel flags
	Parent int32  // index of the peer or lower link, 0 if none
	VLAN   int    // id of a VLAN device
}

// Flags of a link: IFF_UP and IFF_RUNNING of linux/if.h.
const (
	Up      = 1 << 0
	Running = 1 << 6
)

// Up reports whether a link is set up.
func (l Link) Up() bool { return l.Flags&Up != 0 }

// Running reports whether a link has a carrier: a veth's other end is up.
func (l Link) Running() bool { return l.Flags&Running != 0 }

// End is one end of a veth pair to be created.
type End struct {
	Name  string
	Index int32 // explicit interface index, > 0
	MAC   MAC
}

func (e End) String() string {
	return e.Name + " index " + strconv.Itoa(int(e.Index)) + " address " + e.MAC.String()
}

// Address is an address of a link.
type Address struct {
	Link   int32
	Prefix netip.Prefix // address with its mask, not masked off
	NoDAD  bool         // IPv6: usable at once, no duplicate address detection
	OnLink bool         // scope link: not a source for packets that leave by other links
	// Broadcast is only written, not listed; zero: none.
	Broadcast netip.Addr
	// Expires is only listed: the address has a lifetime, as a DHCP client's addresses
	// have. Ours never do.
	Expires bool
}

// Neighbour is a permanent neighbour entry.
type Neighbour struct {
	Link int32
	IP   netip.Addr
	MAC  MAC
}
