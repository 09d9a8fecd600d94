package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
)

// ENIInput holds the facts of one secondary ENI, in the family of the cluster's pods.
type ENIInput struct {
	IPv6       bool
	MAC        string       // colon form
	Card       int          // network card index
	Device     int          // device index on that card
	PrimaryIP  netip.Addr   // zero: a trunk without an IPv6 address
	Subnet     netip.Prefix // not read without PrimaryIP
	MTU        int          // 0 leaves it
	RouteTable int          // 0: that of card and device
	Trunk      bool         // a trunk's own address gets no rule
}

// Table is the route table in use.
func (in ENIInput) Table() int {
	if in.RouteTable != 0 {
		return in.RouteTable
	}
	return netnames.RouteTable(in.Card, in.Device)
}

// Validate finds inputs from which no usable state follows.
func (in ENIInput) Validate() error {
	switch {
	case netnames.IsMain(in.Table()):
		return errors.New(textNotPrimary)
	case in.withoutAddress():
		return nil
	case !in.PrimaryIP.IsValid():
		return fmt.Errorf("ENI %s has no %s address; assign it one, or detach it", in.MAC, in.family())
	case in.PrimaryIP.Is4() == in.IPv6:
		return fmt.Errorf("address %s of ENI %s is not %s", in.PrimaryIP, in.MAC, in.family())
	case !in.Subnet.Contains(in.PrimaryIP):
		return fmt.Errorf("subnet %s of ENI %s does not contain its address %s", in.Subnet, in.MAC, in.PrimaryIP)
	case in.IPv6:
		return nil
	case in.Subnet.Bits() > 30:
		return fmt.Errorf("subnet %s of ENI %s has no room for a router", in.Subnet, in.MAC)
	case in.PrimaryIP == in.Subnet.Masked().Addr().Next():
		return fmt.Errorf("address %s of ENI %s is its subnet's router", in.PrimaryIP, in.MAC)
	}
	return nil
}

// withoutAddress tells a trunk of an IPv6 cluster that carries nothing but branch ENIs:
// nobody gave it an IPv6 address, and it needs none.
func (in ENIInput) withoutAddress() bool { return in.IPv6 && in.Trunk && !in.PrimaryIP.IsValid() }

func (in ENIInput) family() string {
	if in.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// gateway is the VPC router: AWS reserves the first address of an IPv4 subnet for it,
// and it has the same address in every IPv6 subnet.
func (in ENIInput) gateway() netip.Addr {
	if in.IPv6 {
		return netnames.BranchGatewayIPv6()
	}
	return in.Subnet.Masked().Addr().Next()
}

// Route is a route of an ENI's link.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr // zero: scope link
	Source  netip.Addr
	Table   int
}

// String prints the route as `ip route show table all` does, without the link.
func (r Route) String() string {
	var b strings.Builder
	switch {
	case r.Dst.Bits() == 0:
		b.WriteString("default")
	default:
		b.WriteString(ipText(r.Dst))
	}
	if r.Gateway.IsValid() {
		b.WriteString(" via " + r.Gateway.String())
	}
	if r.Table != netnames.MainTable {
		b.WriteString(" table " + tableName(r.Table))
	}
	if !r.Gateway.IsValid() && r.Dst.Addr().Is4() { // IPv6 routes have no scope
		b.WriteString(" scope link")
	}
	if r.Source.IsValid() {
		b.WriteString(" src " + r.Source.String())
	}
	return b.String()
}

// ENIState is what a secondary ENI should have in the kernel.
type ENIState struct {
	IPv6    bool
	MTU     int          // 0: as it is
	Address netip.Prefix // the only one of the link and family, besides link-local ones; zero: none is asked for
	Routes  []Route      // of its table, in the order in which they can be added
	// Unwanted is the route that the kernel adds to main with the address; nil without
	// an address. Through it traffic to the subnet could leave by this ENI with another
	// ENI's address.
	Unwanted *Route
	Rule     *IPRule // nil for a trunk
}

// ENI computes the wanted state from a valid input.
func ENI(in ENIInput) ENIState {
	table, gateway := in.Table(), in.gateway()
	s := ENIState{
		IPv6: in.IPv6,
		MTU:  in.MTU,
		Routes: []Route{
			{Dst: hostPrefix(gateway), Table: table},
			{Dst: allOf(gateway), Gateway: gateway, Table: table},
		},
	}
	if in.withoutAddress() {
		return s
	}
	subnet := in.Subnet.Masked()
	s.Address = netip.PrefixFrom(in.PrimaryIP, subnet.Bits())
	s.Unwanted = &Route{Dst: subnet, Table: netnames.MainTable}
	if !in.IPv6 { // the kernel names no source in IPv6 routes
		s.Unwanted.Source = in.PrimaryIP
	}
	if !in.Trunk {
		s.Rule = &IPRule{Priority: netnames.RuleFromENI, From: hostPrefix(in.PrimaryIP), Table: table, IPv6: in.IPv6}
	}
	return s
}

// allOf is the range of all addresses of a's family.
func allOf(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// String prints the state as the `ip` program would, one object a line; the route
// that must not be there is marked with "not".
func (s ENIState) String() string {
	var b strings.Builder
	b.WriteString("link up")
	if s.MTU > 0 {
		fmt.Fprintf(&b, " mtu %d", s.MTU)
	}
	b.WriteByte('\n')
	if s.Address.IsValid() {
		fmt.Fprintf(&b, "address %s\n", s.Address)
	}
	for _, r := range s.Routes {
		fmt.Fprintf(&b, "route %s\n", r)
	}
	if s.Unwanted != nil {
		fmt.Fprintf(&b, "not route %s\n", *s.Unwanted)
	}
	if s.Rule != nil {
		fmt.Fprintf(&b, "rule %s\n", *s.Rule)
	}
	return b.String()
}
