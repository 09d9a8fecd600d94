package rules

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// nodeIPRules returns the rules of the node itself, all of the cluster's family.
func nodeIPRules(in NodeInput) []netstate.Rule {
	var out []netstate.Rule
	if in.StrictPodENI {
		out = append(out, strictRules(in.IPv6)...)
	}
	if in.NodePortSupport || !in.ExternalSNAT {
		out = append(out, netstate.Rule{Priority: netnames.RuleMark, Mark: in.ConnMark, Mask: in.ConnMark, Table: netnames.MainTable, IPv6: in.IPv6})
	}
	if in.IPv6 {
		return out
	}
	for _, p := range ipv4s(in.ExternalServiceCIDRs) {
		out = append(out, netstate.Rule{Priority: netnames.RuleExternal, To: p, Table: netnames.MainTable})
	}
	return out
}

// localRule is the lookup of the node's own addresses. The kernel has it at priority 0.
// With security groups for pods in strict mode it must come after the rules of branch ENIs,
// so that traffic between a branch pod and its own node passes through the VPC.
func localRule(priority int, ipv6 bool) netstate.Rule {
	return netstate.Rule{Priority: priority, Table: netnames.LocalTable, IPv6: ipv6}
}

// routerRule lets the VPC router's neighbour discovery reach the node, although it arrives
// on the link of a branch ENI.
func routerRule() netstate.Rule {
	return netstate.Rule{Priority: netnames.RuleLocal, From: netstate.Only(netnames.BranchGatewayIPv6()), Protocol: netstate.ICMPv6, Table: netnames.LocalTable, IPv6: true}
}

func strictRules(ipv6 bool) []netstate.Rule {
	if ipv6 {
		return []netstate.Rule{routerRule(), localRule(netnames.RuleLocalStrict, true)}
	}
	return []netstate.Rule{localRule(netnames.RuleLocalStrict, false)}
}

// DiffNodeRules returns the changes from a node's rules, in one family, to the wanted rules
// of the node itself. Deletions include what an earlier run with other settings left.
func DiffNodeRules(current, want []netstate.Rule, ipv6 bool) []netstate.Change {
	wanted := slices.DeleteFunc(slices.Clone(want), func(r netstate.Rule) bool { return r.IPv6 != ipv6 })
	return netstate.DiffRules(current, append(wanted, localRules(current, wanted, ipv6)...), ofNode)
}

// localRules adds the rules for the local table that must exist to the wanted ones. Living
// branch pods of strict mode keep strict mode's rules after a change of the mode: otherwise
// they would lose the connection to their own node. If no rule of strict mode exists, the
// rule at 0 is left alone: other agents move it too.
func localRules(current, wanted []netstate.Rule, ipv6 bool) []netstate.Rule {
	strict := localRule(netnames.RuleLocalStrict, ipv6)
	switch {
	case slices.Contains(wanted, strict):
		return nil
	case !slices.Contains(current, strict):
		if kernels := localRule(netnames.RuleLocal, ipv6); slices.Contains(current, kernels) {
			return []netstate.Rule{kernels}
		}
		return nil
	case slices.ContainsFunc(current, ofStrictPod):
		return slices.DeleteFunc(append(strictRules(ipv6), localRule(netnames.RuleLocal, ipv6)),
			func(r netstate.Rule) bool { return !slices.Contains(current, r) })
	}
	return []netstate.Rule{localRule(netnames.RuleLocal, ipv6)}
}

// ofStrictPod recognises the rule of a living branch pod in strict mode. If the pod's link
// is gone, the rule has Other set.
func ofStrictPod(r netstate.Rule) bool {
	return r.Priority == netnames.RuleBranch && strings.HasPrefix(r.InLink, netnames.BranchVethPrefix) && !r.Other
}

// ofNode recognises the shapes of the node's own rules, whatever the settings were. No
// other program uses upstream's priorities, so a differing mark or range means another
// setting.
func ofNode(r netstate.Rule) bool {
	switch r {
	case localRule(netnames.RuleLocal, r.IPv6), localRule(netnames.RuleLocalStrict, r.IPv6), routerRule():
		return true
	}
	if r.Restricted() || r.Table != netnames.MainTable || r.From.IsValid() {
		return false
	}
	switch r.Priority {
	case netnames.RuleMark:
		return r.Mark != 0 && r.Mark == r.Mask && !r.To.IsValid()
	case netnames.RuleExternal:
		return r.Mark == 0 && r.To.IsValid() && !r.IPv6
	}
	return false
}

// ENITable returns the route table of an ENI; existing rules for its primary address may
// already lead to one. On further network cards an AMI or an older release may have chosen
// another table, whose routes are in use. So the table of a single rule stays, and of
// several the one by the older numbering. enisPerCard is the limit of the card.
func ENITable(current []netstate.Rule, card, device int, primary netip.Addr, enisPerCard int) int {
	computed := netnames.RouteTable(card, device)
	if card == 0 || !primary.IsValid() {
		return computed
	}
	host, legacy := netstate.Only(primary), netnames.LegacyRouteTable(card, device, enisPerCard)
	var tables []int
	for _, r := range current {
		if r.From == host && !r.Restricted() && ownTable(r.Table) {
			tables = append(tables, r.Table)
		}
	}
	switch {
	case len(tables) == 1:
		return tables[0]
	case slices.Contains(tables, legacy):
		return legacy
	}
	return computed
}

// ownTable excludes the kernel's own tables: a rule that leads to one of them does not give
// an ENI its own table.
func ownTable(table int) bool { return table > 0 && (table < 253 || table > netnames.LocalTable) }
