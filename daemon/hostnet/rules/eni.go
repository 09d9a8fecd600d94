package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
)

// ENIInput holds the facts of one secondary ENI.
type ENIInput struct {
	MAC        string // colon form
	Card       int    // network card index
	Device     int    // device index on that card
	PrimaryIP  netip.Addr
	Subnet     netip.Prefix
	MTU        int  // 0 leaves it
	RouteTable int  // 0: that of card and device
	Trunk      bool // a trunk's own address gets no rule
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
	case !in.PrimaryIP.Is4():
		return fmt.Errorf("address %s of ENI %s is not IPv4", in.PrimaryIP, in.MAC)
	case !in.Subnet.Contains(in.PrimaryIP):
		return fmt.Errorf("subnet %s of ENI %s does not contain its address %s", in.Subnet, in.MAC, in.PrimaryIP)
	case in.Subnet.Bits() > 30:
		return fmt.Errorf("subnet %s of ENI %s has no room for a router", in.Subnet, in.MAC)
	case in.PrimaryIP == in.Subnet.Masked().Addr().Next():
		return fmt.Errorf("address %s of ENI %s is its subnet's router", in.PrimaryIP, in.MAC)
	}
	return nil
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
	if !r.Gateway.IsValid() {
		b.WriteString(" scope link")
	}
	if r.Source.IsValid() {
		b.WriteString(" src " + r.Source.String())
	}
	return b.String()
}

// ENIState is what a secondary ENI should have in the kernel.
type ENIState struct {
	MTU     int          // 0: as it is
	Address netip.Prefix // the only one of the link, besides link-local ones
	Routes  []Route      // of its table, in the order in which they can be added
	// Unwanted is the route that the kernel adds to main with the address. Through
	// it traffic to the subnet could leave by this ENI with another ENI's address.
	Unwanted Route
	Rule     *IPRule // nil for a trunk
}

// ENI computes the wanted state from a valid input.
func ENI(in ENIInput) ENIState {
	subnet, table := in.Subnet.Masked(), in.Table()
	// AWS reserves the first address of a subnet for the VPC router.
	gateway := subnet.Addr().Next()
	s := ENIState{
		MTU:     in.MTU,
		Address: netip.PrefixFrom(in.PrimaryIP, subnet.Bits()),
		Routes: []Route{
			{Dst: netip.PrefixFrom(gateway, gateway.BitLen()), Table: table},
			{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Gateway: gateway, Table: table},
		},
		Unwanted: Route{Dst: subnet, Source: in.PrimaryIP, Table: netnames.MainTable},
	}
	if !in.Trunk {
		s.Rule = &IPRule{Priority: netnames.RuleFromENI, From: hostPrefix(in.PrimaryIP), Table: table}
	}
	return s
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
	fmt.Fprintf(&b, "\naddress %s\n", s.Address)
	for _, r := range s.Routes {
		fmt.Fprintf(&b, "route %s\n", r)
	}
	fmt.Fprintf(&b, "not route %s\n", s.Unwanted)
	if s.Rule != nil {
		fmt.Fprintf(&b, "rule %s\n", *s.Rule)
	}
	return b.String()
}
