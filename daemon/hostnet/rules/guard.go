package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/iptables"
)

// Guards isolate the pods of a node from each other in the address family that the cluster
// does not use. Pods have addresses of that family only for traffic that leaves the node,
// and every node uses the same ones.
const (
	textGuard  = "Block Node Local Pod access via " // prefix of the comments
	guardIPv4  = textGuard + "IPv4"                 // in IPv6 clusters
	guardIPv6  = textGuard + "IPv6"                 // in IPv4 clusters with IPv6 egress
	egressIPv4 = "169.254.172.0/22"
	egressIPv6 = "fd00::ac:0/118"
)

var egressRanges = []netip.Prefix{netip.MustParsePrefix(egressIPv4), netip.MustParsePrefix(egressIPv6)}

// IsEgressAddress reports whether an address is one that pods get for traffic that leaves
// the node in the family that the cluster does not use.
func IsEgressAddress(a netip.Addr) bool {
	return slices.ContainsFunc(egressRanges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// filterTable returns the filter table with the guard of a family, or without one.
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

// Guarded reports whether a guard is present.
func Guarded(r iptables.Ruleset) bool {
	t, _ := r.Table("filter")
	c, _ := t.Chain("FORWARD")
	return slices.ContainsFunc(c.Rules, func(spec string) bool { return ownRule("filter", "FORWARD", spec) })
}

// LeavingGuard returns the same wanted state, except that an unwanted guard may stay: pods
// with such addresses may outlive the setting that gave them.
func LeavingGuard(r iptables.Ruleset) iptables.Ruleset {
	r.Tables = slices.DeleteFunc(slices.Clone(r.Tables), func(t iptables.Table) bool { return t.Name == "filter" && !TableWants(t) })
	return r
}

func isGuard(spec string) bool {
	return strings.Contains(spec, textGuard) && slices.Contains([]string{guardIPv4, guardIPv6}, iptables.Comment(spec))
}

// WantedRuleset6 is what ip6tables should contain: nothing is translated or marked in IPv6.
func WantedRuleset6(in NodeInput) iptables.Ruleset {
	return iptables.Ruleset{Tables: []iptables.Table{filterTable(true, in.V6Egress && !in.IPv6)}}
}

// NoRuleset returns a wanted rule set without any of the node's own rules, for either
// family.
func NoRuleset() iptables.Ruleset {
	return iptables.Ruleset{Tables: []iptables.Table{
		filterTable(false, false),
		{Name: "mangle", Chains: []iptables.Chain{{Name: "PREROUTING", Policy: "ACCEPT"}}},
		{Name: "nat", Chains: []iptables.Chain{{Name: "PREROUTING", Policy: "ACCEPT"}, {Name: "POSTROUTING", Policy: "ACCEPT"}}},
	}}
}

// Wants reports whether a wanted rule set contains any rule or chain of ours.
func Wants(r iptables.Ruleset) bool { return slices.ContainsFunc(r.Tables, TableWants) }

// TableWants does the same as Wants, for one table.
func TableWants(t iptables.Table) bool {
	return slices.ContainsFunc(t.Chains, func(c iptables.Chain) bool { return len(c.Rules) > 0 || ownChain(t.Name, c.Name) })
}
