package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
)

// IPRule is a policy rule that looks up a table. Members at their zero value don't
// restrict it.
type IPRule struct {
	Priority   int
	From, To   netip.Prefix
	Mark, Mask uint32
	Table      int
	Other      bool // it has conditions beyond these: never ours
}

// String prints the rule as `ip rule` does.
func (r IPRule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:\tfrom %s", r.Priority, ipText(r.From))
	if r.To.IsValid() {
		b.WriteString(" to " + ipText(r.To))
	}
	switch {
	case r.Mark == 0 && r.Mask == 0:
	case r.Mask == 0 || r.Mask == 0xffffffff:
		fmt.Fprintf(&b, " fwmark %#x", r.Mark)
	default:
		fmt.Fprintf(&b, " fwmark %#x/%#x", r.Mark, r.Mask)
	}
	b.WriteString(" lookup " + tableName(r.Table))
	return b.String()
}

func ipText(p netip.Prefix) string {
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
	if table == netnames.MainTable {
		return "main"
	}
	return strconv.Itoa(table)
}

// nodeIPRules are the rules of the node itself.
func nodeIPRules(in NodeInput) []IPRule {
	var out []IPRule
	if in.NodePortSupport || !in.ExternalSNAT {
		out = append(out, IPRule{Priority: netnames.RuleMark, Mark: in.ConnMark, Mask: in.ConnMark, Table: netnames.MainTable})
	}
	for _, p := range ipv4s(in.ExternalServiceCIDRs) {
		out = append(out, IPRule{Priority: netnames.RuleExternal, To: p, Table: netnames.MainTable})
	}
	return out
}

// DiffNodeRules compares the rules of a node with the wanted ones of the node
// itself. Deletions hold what an earlier run with other settings left. The caller
// adds before it deletes.
func DiffNodeRules(current, want []IPRule) (add, remove []IPRule) {
	for _, r := range want {
		if !slices.Contains(current, r) {
			add = append(add, r)
		}
	}
	kept := map[IPRule]bool{}
	for _, r := range current {
		if !ofNode(r) {
			continue
		}
		if slices.Contains(want, r) && !kept[r] {
			kept[r] = true
			continue
		}
		remove = append(remove, r)
	}
	return add, remove
}

// ofNode recognises the shapes of the node's own rules whatever the settings were:
// the original's priorities are its own, so a mark or range differs only because
// the setting did.
func ofNode(r IPRule) bool {
	if r.Other || r.Table != netnames.MainTable || r.From.IsValid() {
		return false
	}
	switch r.Priority {
	case netnames.RuleMark:
		return r.Mark != 0 && r.Mark == r.Mask && !r.To.IsValid()
	case netnames.RuleExternal:
		return r.Mark == 0 && r.To.IsValid()
	}
	return false
}

// PodRules are the wanted rules of a pod whose address lies on the ENI with the
// given table.
func PodRules(pod netip.Addr, table int) []IPRule {
	host := hostPrefix(pod)
	out := []IPRule{{Priority: netnames.RuleToPod, To: host, Table: netnames.MainTable}}
	if !netnames.IsMain(table) {
		out = append(out, IPRule{Priority: netnames.RuleFromPod, From: host, Table: table})
	}
	return out
}

// DiffPodRules compares the rules of a pod with the wanted ones; none wanted
// removes all. Old releases had one rule per VPC range, with a destination: they
// are removed with the others of the address.
func DiffPodRules(current []IPRule, pod netip.Addr, want []IPRule) (add, remove []IPRule) {
	host := hostPrefix(pod)
	for _, r := range want {
		if !slices.Contains(current, r) {
			add = append(add, r)
		}
	}
	kept := map[IPRule]bool{}
	for _, r := range current {
		to := r.Priority == netnames.RuleToPod && r.To == host && !r.From.IsValid()
		from := r.Priority == netnames.RuleFromPod && r.From == host
		if r.Other || !to && !from {
			continue
		}
		if slices.Contains(want, r) && !kept[r] {
			kept[r] = true
			continue
		}
		remove = append(remove, r)
	}
	return add, remove
}
