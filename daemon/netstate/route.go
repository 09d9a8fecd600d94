package netstate

import (
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
)

// Scope of a route.
type Scope uint8

// Kernel values, RT_SCOPE_*.
const (
	Universe Scope = 0
	OnLink   Scope = 253 // no gateway
	Nowhere  Scope = 255 // for deletion only: any scope
)

// Route is a unicast route. The zero Dst with a valid family of Gateway is the default
// route; otherwise Dst is masked.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr
	Source  netip.Addr // preferred source
	Link    int32
	Table   int // 0 reads as main
	Scope   Scope
}

// Direct returns a route without a gateway, in the form in which the kernel lists it.
func Direct(dst netip.Prefix, link int32, table int) Route {
	r := Route{Dst: dst, Link: link, Table: table}
	if dst.Addr().Is4() { // IPv6 routes have no scope
		r.Scope = OnLink
	}
	return r
}

// Default returns a default route in the gateway's family.
func Default(gateway netip.Addr, link int32, table int) Route {
	return Route{Dst: All(gateway), Gateway: gateway, Link: link, Table: table}
}

// SamePath reports whether two routes lead the same way, regardless of preferred source and
// scope.
func (r Route) SamePath(o Route) bool {
	return r.Dst == o.Dst && r.Gateway == o.Gateway && r.Link == o.Link && r.Table == o.Table
}

// String prints the route as `ip route show table all` does, without the link.
func (r Route) String() string { return r.Over("") }

// Over does the same as String, with the name of the link.
func (r Route) Over(link string) string {
	to := rangeText(r.Dst)
	if r.Dst.Bits() <= 0 {
		to = "default"
	}
	if r.Gateway.IsValid() {
		to += " via " + r.Gateway.String()
	}
	if link != "" {
		to += " dev " + link
	}
	if r.Table != 0 && r.Table != netnames.MainTable {
		to += " table " + tableName(r.Table)
	}
	if r.Scope == OnLink {
		to += " scope link"
	}
	if r.Source.IsValid() {
		to += " src " + r.Source.String()
	}
	return to
}

// All returns the range of all addresses of a's family.
func All(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// Only returns the range that contains only a.
func Only(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// rangeText prints a range as iproute2 does.
func rangeText(p netip.Prefix) string {
	switch {
	case !p.IsValid():
		return "all"
	case p.IsSingleIP():
		return p.Addr().String()
	default:
		return p.String()
	}
}

func tableName(table int) string {
	switch table {
	case netnames.MainTable:
		return "main"
	case netnames.LocalTable:
		return "local"
	}
	return strconv.Itoa(table)
}
