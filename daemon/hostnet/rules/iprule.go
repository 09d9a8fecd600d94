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
	InLink     string // the link by which the packet came in
	Protocol   uint8  // IP protocol
	Table      int
	IPv6       bool
	Other      bool // it has conditions beyond these, or applies to nothing: never ours
}

// Restricted reports whether the rule has conditions that none of the rules for
// addresses have.
func (r IPRule) Restricted() bool { return r.Other || r.InLink != "" || r.Protocol != 0 }

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
	if r.InLink != "" {
		b.WriteString(" iif " + r.InLink)
	}
	switch r.Protocol {
	case 0:
	case icmpv6:
		b.WriteString(" ipproto ipv6-icmp")
	default:
		fmt.Fprintf(&b, " ipproto %d", r.Protocol)
	}
	b.WriteString(" lookup " + tableName(r.Table))
	return b.String()
}

// icmpv6 is the IP protocol number of ICMPv6.
const icmpv6 = 58

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
	switch table {
	case netnames.MainTable:
		return "main"
	case netnames.LocalTable:
		return "local"
	}
	return strconv.Itoa(table)
}

// PodRules are the wanted rules of a pod whose address lies on the ENI with the
// given table.
func PodRules(pod netip.Addr, table int) []IPRule {
	host, six := hostPrefix(pod), !pod.Is4()
	out := []IPRule{{Priority: netnames.RuleToPod, To: host, Table: netnames.MainTable, IPv6: six}}
	if !netnames.IsMain(table) {
		out = append(out, IPRule{Priority: netnames.RuleFromPod, From: host, Table: table, IPv6: six})
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
		if r.Restricted() || !to && !from {
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
