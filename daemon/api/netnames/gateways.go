package netnames

import "net/netip"

// GatewayIPv4 returns the next hop of interface index of an IPv4 pod: 169.254.1.1 for the
// first. No host has the address; a permanent neighbour entry in the pod maps it to the
// host end of the veth pair. index must be below 255.
func GatewayIPv4(index int) netip.Addr {
	return netip.AddrFrom4([4]byte{169, 254, 1, byte(index + 1)})
}

// GatewayIPv6 returns the same for IPv6 pods: fe80::1 for the first interface.
func GatewayIPv6(index int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 15: byte(index + 1)})
}

// BranchGatewayIPv6 returns the router of every IPv6 subnet, the next hop of IPv6 branch
// ENIs: fe80:ec2::1.
func BranchGatewayIPv6() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 2: 0x0e, 3: 0xc2, 15: 1})
}
