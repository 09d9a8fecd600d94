package rules

import (
	"net/netip"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// PodRules returns the wanted rules of a pod whose address is on the ENI with the given
// table.
func PodRules(pod netip.Addr, table int) []netstate.Rule {
	host, six := netstate.Only(pod), !pod.Is4()
	out := []netstate.Rule{{Priority: netnames.RuleToPod, To: host, Table: netnames.MainTable, IPv6: six}}
	if !netnames.IsMain(table) {
		out = append(out, netstate.Rule{Priority: netnames.RuleFromPod, From: host, Table: table, IPv6: six})
	}
	return out
}

// DiffPodRules returns the changes from a pod's rules to the wanted ones; if none are
// wanted, it removes all. Old releases had one rule per VPC range, with a destination:
// these are removed with the others of the address.
func DiffPodRules(current []netstate.Rule, pod netip.Addr, want []netstate.Rule) []netstate.Change {
	host := netstate.Only(pod)
	return netstate.DiffRules(current, want, func(r netstate.Rule) bool {
		to := r.Priority == netnames.RuleToPod && r.To == host && !r.From.IsValid()
		from := r.Priority == netnames.RuleFromPod && r.From == host
		return !r.Restricted() && (to || from)
	})
}
