package cluster

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// Addresses of the link between the process that started the cluster and the fabric
// (RFC 2544's range, so in no VPC).
var (
	Uplink        = netip.MustParsePrefix("198.18.0.1/30")
	uplinkGateway = netip.MustParsePrefix("198.18.0.2/30")

	UplinkIPv6        = netip.MustParsePrefix("2001:2::1/64") // RFC 5180
	uplinkGatewayIPv6 = netip.MustParsePrefix("2001:2::2/64")
	// The fabric's links have no automatic link-local address, and the kernel needs one
	// to send neighbour solicitations.
	gatewayLinkLocal = netip.MustParsePrefix("fe80::2/64")
)

// Names of the two ends. The fabric's own links are called f*, and checked.
const (
	uplinkName  = "uplink"
	gatewayName = "control"
)

// linkUp connects the caller's network namespace with the fabric, like VPC peering, so that
// the API server reaches kubelets and tests reach everything.
func linkUp(fabric *netns.NS, vpc ...netip.Prefix) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = uplinkName
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerNamespace = gatewayName, netlink.NsFd(fabric.FD())
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("add link to the fabric: %w", err)
	}
	if err := fabric.Do(func() error { return address(gatewayName, uplinkGateway, uplinkGatewayIPv6, gatewayLinkLocal) }); err != nil {
		return err
	}
	if err := address(uplinkName, Uplink, UplinkIPv6); err != nil {
		return err
	}
	for _, p := range vpc {
		gateway := uplinkGateway.Addr()
		if p.Addr().Is6() {
			gateway = uplinkGatewayIPv6.Addr()
		}
		route := &netlink.Route{Dst: ipNet(p), Gw: gateway.AsSlice()}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("add route to %s: %w", p, err)
		}
	}
	return nil
}

// linkDown removes the link and its routes.
func linkDown() error {
	link, err := netlink.LinkByName(uplinkName)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("remove link to the fabric: %w", err)
	}
	return nil
}

// address adds addresses, usable at once, to a link of this namespace and sets it up.
func address(name string, addresses ...netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	for _, a := range addresses {
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(a), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("add address %s to %s: %w", a, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
