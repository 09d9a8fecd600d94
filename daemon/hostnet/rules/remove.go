package rules

import (
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
)

// FilterRemoval removes everything of ours from iptables or ip6tables.
type FilterRemoval struct {
	Script  string   // for `iptables-restore --noflush`; "" if there is nothing to remove
	Objects []string // what is removed: "nat/POSTROUTING -m comment ...", "nat chain CNI-E4-..."
	Held    []string // chains that can only be emptied, because other programs' rules jump to them
}

// RemoveRuleset removes our rules and chains from a rule set, including those of the egress
// plugin's pods. Other programs' rules stay where they are.
func RemoveRuleset(current iptables.Ruleset) FilterRemoval {
	var b strings.Builder
	var out FilterRemoval
	for _, t := range NoRuleset().Tables {
		now, ok := current.Table(t.Name)
		if !ok {
			continue
		}
		d := tableDiff{now: now, want: t, egress: true}
		d.kernelChains()
		d.staleChains()
		d.print(&b)
		for _, line := range d.delete {
			chain, spec, _ := strings.Cut(strings.TrimPrefix(line, "-D "), " ")
			out.Objects = append(out.Objects, t.Name+"/"+chain+" "+spec)
		}
		for _, line := range d.drop {
			out.Objects = append(out.Objects, t.Name+" chain "+strings.TrimPrefix(line, "-X "))
		}
		for _, c := range now.Chains {
			if d.ownChain(c.Name) && d.heldByOthers(c.Name) {
				out.Held = append(out.Held, t.Name+" chain "+c.Name)
			}
		}
	}
	out.Script = b.String()
	return out
}

// egressChainLength is the length of an egress pod's chain name.
const egressChainLength = 28

// isEgressChain reports whether a chain belongs to a pod with an egress address.
func isEgressChain(table, name string) bool {
	if table != "nat" || len(name) != egressChainLength {
		return false
	}
	for _, prefix := range []string{netnames.EgressChainPrefixV4, netnames.EgressChainPrefixV6} {
		if hex, ok := strings.CutPrefix(name, prefix); ok {
			return strings.Trim(hex, "0123456789abcdef") == ""
		}
	}
	return false
}

// isEgressJump reports whether a rule jumps to such a chain.
func isEgressJump(table, chain, spec string) bool {
	if table != "nat" || chain != "POSTROUTING" || !strings.Contains(spec, "CNI-E") {
		return false
	}
	return isEgressChain(table, iptables.Target(spec))
}
