package introspectserver

import (
	"cmp"
	"fmt"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
)

// podInterfaces finds a pod's addresses in the address book, sorted by network card. The
// pod's name and this order determine the names of the host links.
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
		return 1 << 20 // unknown cards come last
	}
	return *i.Card
}

// podDifferences describes what the kernel lacks for an address and what it should not have.
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

// ruleDifferences compares the kernel's rules with those that the plugin made for the pod.
// If the pod's network interface is unknown, so is the right table.
func ruleDifferences(want introspect.PodInterface, k introspect.PodKernel, differs func(string, ...any)) {
	host := netstate.Only(want.Address)
	table := netnames.MainTable
	if want.RouteTable != nil && *want.RouteTable != 0 && !netnames.IsMain(*want.RouteTable) {
		table = *want.RouteTable
	}
	var current []netstate.Rule
	for _, r := range k.Rules {
		rule := netstate.Rule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table, IPv6: want.Address.Is6()}
		if !slices.Contains(current, rule) { // rules may differ in conditions not shown here
			current = append(current, rule)
		}
	}
	changes := netstate.DiffRules(current, rules.PodRules(want.Address, table), func(r netstate.Rule) bool {
		return want.RouteTable != nil || r.Priority != netnames.RuleFromPod || r.From != host
	})
	for _, c := range changes {
		if c.Do == netstate.DelRule {
			differs("The rule %q is not one of the pod's: it sends the pod's traffic elsewhere.", c.Rule)
		}
	}
	from := true
	for _, c := range changes {
		switch {
		case c.Do != netstate.AddRule:
		case c.Rule.Priority == netnames.RuleFromPod:
			from = false
			differs("The rule %q is missing: the pod's traffic leaves by the primary network interface.", c.Rule)
		default:
			differs("The rule %q is missing.", c.Rule)
		}
	}
	isDefault := func(r introspect.PodRoute) bool { return r.Table == table && r.To.Bits() == 0 }
	if table != netnames.MainTable && from && !slices.ContainsFunc(k.Tables, isDefault) {
		differs("Table %d of %s has no default route: the pod reaches nothing outside of its node.", table, want.ENIID)
	}
}
