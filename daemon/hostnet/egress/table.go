package egress

import (
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
)

// NAT returns the nat table in an output of iptables-save. Other programs' rules may have
// any form: the rules that matter here are in chains of known names.
func NAT(saved string) iptables.Table {
	t, _ := iptables.ParseKnown(saved).Table("nat")
	return t
}

// In reports whether the chain and the jump are in the nat table as wanted, with nothing
// else in the chain and no other jump to it.
func (s SNAT) In(nat iptables.Table) bool { return len(s.Missing(nat)) == 0 }

// Missing describes each difference from the wanted state.
func (s SNAT) Missing(nat iptables.Table) (out []string) {
	have, ok := nat.Chain(s.Chain)
	want := s.rules()
	switch {
	case !ok:
		return []string{"chain " + s.Chain + " of table nat is missing"}
	case !slices.Equal(have.Rules, want.Rules):
		out = append(out, "chain "+s.Chain+" of table nat has other rules than "+strings.Join(want.Lines(), ", "))
	}
	if jumps := unlink(nat, s.Chain); len(jumps) != 1 || jumps[0] != deletion(s.Jump()) {
		out = append(out, "the one jump to the chain is not "+s.Jump())
	}
	return out
}

// deletion returns the line that deletes the rule that a line adds.
func deletion(rule string) string { return "-D" + strings.TrimPrefix(rule, "-A") }

// unlink deletes all rules that jump to a chain.
func unlink(nat iptables.Table, target string) (out []string) {
	for _, c := range nat.Chains {
		for i, spec := range c.Rules {
			if iptables.JumpsTo(spec, target) {
				out = append(out, deletion(c.Line(i)))
			}
		}
	}
	return out
}

// Stale lists the chains of a network's sandboxes, except those for which keep is true. The
// comments identify the sandbox; a chain without one is left alone.
func Stale(nat iptables.Table, network string, keep func(containerID string) bool) (out []string) {
	for _, c := range nat.Chains {
		v6 := strings.HasPrefix(c.Name, netnames.EgressChainPrefixV6)
		if !v6 && !strings.HasPrefix(c.Name, netnames.EgressChainPrefixV4) {
			continue
		}
		for _, rule := range c.Rules {
			id, ok := owner(rule, network)
			if ok && c.Name == Chain(v6, network, id) {
				if !keep(id) {
					out = append(out, c.Name)
				}
				break
			}
		}
	}
	return out
}

// owner returns the container id in a rule's comment.
func owner(rule, network string) (id string, ok bool) {
	id, ok = strings.CutPrefix(iptables.Comment(rule), strings.TrimSuffix(Comment(network, ""), `"`))
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, `"`)
}
