package introspectserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
)

// podInterfaces finds the addresses that a pod holds by the book, by network card.
// The names of the host links follow from the pod's and from that order.
func podInterfaces(v View, pod introspect.PodRef) []introspect.PodInterface {
	out := []introspect.PodInterface{}
	for _, e := range v.Book.ENIs {
		for _, c := range e.CIDRs {
			for _, a := range c.Records {
				if !a.Assigned() || a.Pod.Namespace != pod.Namespace || a.Pod.Name != pod.Name {
					continue
				}
				i := introspect.PodInterface{
					Address: a.Address, ENIID: string(e.ID), Card: &e.Card, Device: &e.Device, SubnetID: e.SubnetID, RouteTable: &e.RouteTable,
				}
				if at := a.AssignedAt.UTC(); !at.IsZero() {
					i.AssignedAt = &at
				}
				out = append(out, i)
			}
		}
	}
	for _, a := range v.Book.Unplaced {
		if a.Pod.Namespace == pod.Namespace && a.Pod.Name == pod.Name {
			i := introspect.PodInterface{Address: a.Address}
			if at := a.AssignedAt.UTC(); !at.IsZero() {
				i.AssignedAt = &at
			}
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b introspect.PodInterface) int { return cmp.Compare(cardOf(a), cardOf(b)) })
	for n := range out {
		out[n].HostLink = netnames.HostVeth(v.NetworkEnv.VethPrefix, pod.Namespace, pod.Name, n)
	}
	return out
}

func cardOf(i introspect.PodInterface) int {
	if i.Card == nil {
		return 1 << 20 // those on no known card come last
	}
	return *i.Card
}

// podDifferences says what the kernel should have for an address and has not, and
// what it has and should not.
func podDifferences(want introspect.PodInterface, k introspect.PodKernel) []string {
	out := []string{}
	differs := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch l := k.Link; {
	case l == nil:
		differs("The host link %s is missing: the pod is cut off, or was never set up.", want.HostLink)
	case !l.Up:
		differs("The host link %s is down.", l.Name)
	case !l.Running:
		differs("The host link %s is up, but the pod's end of it is not.", l.Name)
	}
	routeDifferences(want, k, differs)
	ruleDifferences(want, k, differs)
	for _, n := range k.Neighbours {
		if n.State == "failed" || n.State == "incomplete" {
			differs("The pod does not answer for %s on %s (neighbour entry %s).", n.Address, n.Link, n.State)
		}
	}
	return out
}

func routeDifferences(want introspect.PodInterface, k introspect.PodKernel, differs func(string, ...any)) {
	found := false
	for _, r := range k.Routes {
		if r.Link == want.HostLink && !r.Gateway.IsValid() {
			found = true
			continue
		}
		how := ""
		if r.Gateway.IsValid() {
			how = " via " + r.Gateway.String()
		}
		differs("A route to %s leads%s to %s and not to the pod's link %s.", want.Address, how, r.Link, want.HostLink)
	}
	if !found {
		differs("The route to %s through %s is missing from the main table.", want.Address, want.HostLink)
	}
}

// ruleDifferences: one rule to the pod that looks up main; one from it that looks up
// the table of its ENI, unless that is main.
func ruleDifferences(want introspect.PodInterface, k introspect.PodKernel, differs func(string, ...any)) {
	host := netip.PrefixFrom(want.Address, want.Address.BitLen())
	to, from := false, false
	secondary := want.RouteTable != nil && !netnames.IsMain(*want.RouteTable) && *want.RouteTable != 0
	for _, r := range k.Rules {
		switch {
		case r.Priority == netnames.RuleToPod && r.To == host && !r.From.IsValid() && r.Table == netnames.MainTable:
			to = true
		case r.Priority == netnames.RuleFromPod && r.From == host && !r.To.IsValid() && secondary && r.Table == *want.RouteTable:
			from = true
		case want.RouteTable == nil && r.Priority == netnames.RuleFromPod && r.From == host:
			// Which table is right is not known.
		default:
			differs("The rule %q is not one of the pod's: it sends its traffic elsewhere.", ruleText(r))
		}
	}
	if !to {
		differs("The rule %q is missing.", ruleText(introspect.PodRule{Priority: netnames.RuleToPod, To: host, Table: netnames.MainTable}))
	}
	if !secondary {
		return
	}
	if !from {
		differs("The rule %q is missing: the pod's traffic leaves by the primary network interface.",
			ruleText(introspect.PodRule{Priority: netnames.RuleFromPod, From: host, Table: *want.RouteTable}))
		return
	}
	isDefault := func(r introspect.PodRoute) bool { return r.Table == *want.RouteTable && r.To.Bits() == 0 }
	if !slices.ContainsFunc(k.Tables, isDefault) {
		differs("Table %d of %s has no default route: the pod reaches nothing outside of its node.", *want.RouteTable, want.ENIID)
	}
}

// ruleText is a rule as ip rule prints it.
func ruleText(r introspect.PodRule) string {
	text := fmt.Sprintf("%d: from ", r.Priority)
	if r.From.IsValid() {
		text += prefixText(r.From)
	} else {
		text += "all"
	}
	if r.To.IsValid() {
		text += " to " + prefixText(r.To)
	}
	if r.Table == netnames.MainTable {
		return text + " lookup main"
	}
	return text + fmt.Sprintf(" lookup %d", r.Table)
}

func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
