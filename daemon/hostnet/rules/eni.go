package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// ENIInput holds the facts of one secondary ENI, in the address family of the cluster's
// pods.
type ENIInput struct {
	IPv6       bool
	MAC        string       // colon form
	Card       int          // network card index
	Device     int          // device index on that card
	PrimaryIP  netip.Addr   // zero: a trunk without an IPv6 address
	Subnet     netip.Prefix // ignored without PrimaryIP
	MTU        int          // 0 leaves it unchanged
	RouteTable int          // 0: derived from card and device
	Trunk      bool         // a trunk's own address gets no rule
}

// Table returns the route table in use.
func (in ENIInput) Table() int {
	if in.RouteTable != 0 {
		return in.RouteTable
	}
	return netnames.RouteTable(in.Card, in.Device)
}

// Validate refuses inputs from which no usable state follows.
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

// withoutAddress reports whether this is a trunk of an IPv6 cluster that carries branch
// ENIs only: it has no IPv6 address and needs none.
func (in ENIInput) withoutAddress() bool { return in.IPv6 && in.Trunk && !in.PrimaryIP.IsValid() }

func (in ENIInput) family() string {
	if in.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// gateway returns the VPC router: AWS reserves the first address of an IPv4 subnet for it,
// and it has the same address in every IPv6 subnet.
func (in ENIInput) gateway() netip.Addr {
	if in.IPv6 {
		return netnames.BranchGatewayIPv6()
	}
	return in.Subnet.Masked().Addr().Next()
}

// ENIState is what a secondary ENI should have in the kernel.
type ENIState struct {
	IPv6    bool
	MTU     int              // 0: unchanged
	Address netip.Prefix     // the only one of the link and family, besides link-local; zero: none
	Routes  []netstate.Route // of its table, in the order in which they can be added
	// Unwanted is the route that the kernel adds to main along with the address; nil
	// without an address. Through it traffic to the subnet could leave by this ENI with
	// another ENI's address.
	Unwanted *netstate.Route
	Rule     *netstate.Rule // nil for a trunk
}

// ENI computes the wanted state of a valid input on a link.
func ENI(in ENIInput, link int32) ENIState {
	table, gateway := in.Table(), in.gateway()
	s := ENIState{
		IPv6: in.IPv6,
		MTU:  in.MTU,
		Routes: []netstate.Route{
			netstate.Direct(netstate.Only(gateway), link, table),
			netstate.Default(gateway, link, table),
		},
	}
	if in.withoutAddress() {
		return s
	}
	subnet := in.Subnet.Masked()
	s.Address = netip.PrefixFrom(in.PrimaryIP, subnet.Bits())
	unwanted := netstate.Direct(subnet, link, netnames.MainTable)
	if !in.IPv6 { // the kernel lists no source in IPv6 routes
		unwanted.Source = in.PrimaryIP
	}
	s.Unwanted = &unwanted
	if !in.Trunk {
		s.Rule = &netstate.Rule{Priority: netnames.RuleFromENI, From: netstate.Only(in.PrimaryIP), Table: table, IPv6: in.IPv6}
	}
	return s
}

// String prints the state as the `ip` program would, one object per line; the unwanted
// route is marked with "not".
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

// DiffENI returns the changes from the current state in the ENI's family to the wanted one.
func DiffENI(now netstate.State, link netstate.Link, in ENIInput, want ENIState) (out []netstate.Change) {
	add := func(c netstate.Change) {
		if c.Link.Index == 0 {
			c.Link = link
		}
		out = append(out, c)
	}
	if want.MTU != 0 && link.MTU != want.MTU {
		to := link
		to.MTU = want.MTU
		add(netstate.Change{Do: netstate.SetMTU, Link: to})
	}
	// Adding an address, or setting a link up, also adds the route to the subnet in main.
	if !link.Up() {
		add(netstate.Change{Do: netstate.SetUp})
	}
	addresses := diffAddresses(now, link, want)
	for _, c := range addresses {
		add(c)
	}
	// Other routes to the same destinations are removed: the kernel would use whichever it
	// lists first.
	for _, r := range want.Routes {
		if !slices.Contains(now.Routes, r) {
			add(netstate.Change{Do: netstate.PutRoute, Route: r})
		}
		for _, other := range now.Routes {
			if other.Table == r.Table && other.Dst == r.Dst && other != r {
				add(netstate.Change{Do: netstate.DelRoute, Route: other})
			}
		}
	}
	if u := want.Unwanted; u != nil {
		added := len(addresses) > 0 && addresses[len(addresses)-1].Do == netstate.AddAddress
		if added || !link.Up() || slices.Contains(now.Routes, *u) {
			add(netstate.Change{Do: netstate.DelRoute, Route: *u})
		}
	}
	if want.Rule != nil && !hasENIRule(now.Rules, in, *want.Rule) {
		add(netstate.Change{Do: netstate.AddRule, Rule: *want.Rule})
	}
	return out
}

// diffAddresses makes the wanted address the only one on the link, besides link-local ones.
// It comes last. If none is wanted, the addresses belong to another program.
func diffAddresses(now netstate.State, link netstate.Link, want ENIState) (out []netstate.Change) {
	if !want.Address.IsValid() {
		return nil
	}
	there := false
	for _, a := range now.Addresses {
		switch {
		case a.Link != link.Index:
		case a.Prefix == want.Address:
			there = true
		case a.Prefix.Addr().IsGlobalUnicast():
			out = append(out, netstate.Change{Do: netstate.DelAddress, Address: a})
		}
	}
	if there {
		return out
	}
	// EC2 assigns an address to one ENI only, so duplicate address detection is
	// unnecessary.
	return append(out, netstate.Change{Do: netstate.AddAddress, Address: netstate.Address{
		Link: link.Index, Prefix: want.Address, NoDAD: want.IPv6, Broadcast: broadcast(want.Address),
	}})
}

// broadcast returns the last address of an IPv4 range; IPv6 has none.
func broadcast(p netip.Prefix) netip.Addr {
	if !p.Addr().Is4() {
		return netip.Addr{}
	}
	a := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a)
}

// hasENIRule reports whether the ENI has its rule. On further network cards any rule for
// the address counts: an AMI or an older release made it, and its table is in use.
func hasENIRule(current []netstate.Rule, in ENIInput, want netstate.Rule) bool {
	return slices.ContainsFunc(current, func(r netstate.Rule) bool {
		return r == want || in.Card > 0 && r.From == want.From
	})
}
