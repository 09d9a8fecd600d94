package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/netstate"
)

// Guards keep the pods of a node apart where they have addresses of the cluster's other
// family: those are the node's own affair, for traffic that leaves it, and the same on
// every node.
const (
	textGuard  = "Block Node Local Pod access via " // comments begin so
	guardIPv4  = textGuard + "IPv4"                 // of IPv6 clusters
	guardIPv6  = textGuard + "IPv6"                 // of IPv4 clusters with IPv6 egress
	egressIPv4 = "169.254.172.0/22"
	egressIPv6 = "fd00::ac:0/118"
)

var egressRanges = []netip.Prefix{netip.MustParsePrefix(egressIPv4), netip.MustParsePrefix(egressIPv6)}

// IsEgressAddress reports whether an address is one that pods get for traffic that
// leaves the node in the cluster's other family.
func IsEgressAddress(a netip.Addr) bool {
	return slices.ContainsFunc(egressRanges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// filterTable holds the guard of a family, or none.
func filterTable(ipv6, guarded bool) Table {
	forward := Chain{Name: "FORWARD", Policy: "ACCEPT"}
	dst, comment, answer := egressIPv4, guardIPv4, "icmp-port-unreachable"
	if ipv6 {
		dst, comment, answer = egressIPv6, guardIPv6, "icmp6-port-unreachable"
	}
	if guarded {
		forward.Rules = []string{fmt.Sprintf(`-d %s -m conntrack --ctstate NEW -m comment --comment "%s" -j REJECT --reject-with %s`, dst, comment, answer)}
	}
	return Table{Name: "filter", Chains: []Chain{forward}}
}

// Guarded reports whether a guard is there.
func (r Ruleset) Guarded() bool {
	t, _ := r.Table("filter")
	c, _ := t.Chain("FORWARD")
	return slices.ContainsFunc(c.Rules, func(spec string) bool { return ownRule("filter", "FORWARD", spec) })
}

// LeavingGuard asks for the same but lets a guard that is not wanted stay: pods with
// such addresses may outlive the setting that gave them.
func (r Ruleset) LeavingGuard() Ruleset {
	r.Tables = slices.DeleteFunc(slices.Clone(r.Tables), func(t Table) bool { return t.Name == "filter" && !t.Wants() })
	return r
}

func isGuard(spec string) bool {
	return strings.Contains(spec, textGuard) && slices.Contains([]string{guardIPv4, guardIPv6}, netstate.Comment(spec))
}

// WantedRuleset6 is what ip6tables should hold: nothing is translated or marked in IPv6.
func WantedRuleset6(in NodeInput) Ruleset {
	return Ruleset{Tables: []Table{filterTable(true, in.V6Egress && !in.IPv6)}}
}

// NoRuleset asks for none of the node's own rules, in either family.
func NoRuleset() Ruleset {
	return Ruleset{Tables: []Table{
		filterTable(false, false),
		{Name: "mangle", Chains: []Chain{{Name: "PREROUTING", Policy: "ACCEPT"}}},
		{Name: "nat", Chains: []Chain{{Name: "PREROUTING", Policy: "ACCEPT"}, {Name: "POSTROUTING", Policy: "ACCEPT"}}},
	}}
}

// Wants reports whether anything is asked to be there.
func (r Ruleset) Wants() bool { return slices.ContainsFunc(r.Tables, Table.Wants) }
