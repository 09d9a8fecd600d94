package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/iptables"
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
func filterTable(ipv6, guarded bool) iptables.Table {
	forward := iptables.Chain{Name: "FORWARD", Policy: "ACCEPT"}
	dst, comment, answer := egressIPv4, guardIPv4, "icmp-port-unreachable"
	if ipv6 {
		dst, comment, answer = egressIPv6, guardIPv6, "icmp6-port-unreachable"
	}
	if guarded {
		forward.Rules = []string{fmt.Sprintf(`-d %s -m conntrack --ctstate NEW -m comment --comment "%s" -j REJECT --reject-with %s`, dst, comment, answer)}
	}
	return iptables.Table{Name: "filter", Chains: []iptables.Chain{forward}}
}

// Guarded reports whether a guard is there.
func Guarded(r iptables.Ruleset) bool {
	t, _ := r.Table("filter")
	c, _ := t.Chain("FORWARD")
	return slices.ContainsFunc(c.Rules, func(spec string) bool { return ownRule("filter", "FORWARD", spec) })
}

// LeavingGuard asks for the same but lets a guard that is not wanted stay: pods with
// such addresses may outlive the setting that gave them.
func LeavingGuard(r iptables.Ruleset) iptables.Ruleset {
	r.Tables = slices.DeleteFunc(slices.Clone(r.Tables), func(t iptables.Table) bool { return t.Name == "filter" && !TableWants(t) })
	return r
}

func isGuard(spec string) bool {
	return strings.Contains(spec, textGuard) && slices.Contains([]string{guardIPv4, guardIPv6}, iptables.Comment(spec))
}

// WantedRuleset6 is what ip6tables should hold: nothing is translated or marked in IPv6.
func WantedRuleset6(in NodeInput) iptables.Ruleset {
	return iptables.Ruleset{Tables: []iptables.Table{filterTable(true, in.V6Egress && !in.IPv6)}}
}

// NoRuleset asks for none of the node's own rules, in either family.
func NoRuleset() iptables.Ruleset {
	return iptables.Ruleset{Tables: []iptables.Table{
		filterTable(false, false),
		{Name: "mangle", Chains: []iptables.Chain{{Name: "PREROUTING", Policy: "ACCEPT"}}},
		{Name: "nat", Chains: []iptables.Chain{{Name: "PREROUTING", Policy: "ACCEPT"}, {Name: "POSTROUTING", Policy: "ACCEPT"}}},
	}}
}

// Wants reports whether a wanted rule set asks for anything to be there.
func Wants(r iptables.Ruleset) bool { return slices.ContainsFunc(r.Tables, TableWants) }

// TableWants is Wants for one table.
func TableWants(t iptables.Table) bool {
	return slices.ContainsFunc(t.Chains, func(c iptables.Chain) bool { return len(c.Rules) > 0 || ownChain(t.Name, c.Name) })
}
