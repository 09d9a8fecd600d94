package rules

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// Kernel is what rtnetlink lists for a node, in both families. Rules don't have Other set
// for missing links.
type Kernel struct {
	netstate.State
	// VethPrefix is the configured one; links of pods have it, "eni" or "vlan".
	VethPrefix string
	Signed     []netstate.Rule // those of Rules that name their maker, as no daemon's do
}

// Remnants are our objects in a kernel.
type Remnants struct {
	Pods      []netstate.Link // host links of living pods
	Devices   []netstate.Link // VLAN devices of branch ENIs
	Restore   []netstate.Rule // the kernel's own rules that strict mode moved: added before Rules go
	Rules     []netstate.Rule
	Routes    []netstate.Route // of secondary ENIs; those of Pods and Devices disappear with them
	Addresses []netstate.Address
	Kept      []string // secondary ENIs that look like ours but are configured by other programs
}

// Changes removes the remnants, in the required order. Routes of an ENI come after its
// address: if the daemon is killed before, they still identify the address.
func (r Remnants) Changes(now netstate.State) (out []netstate.Change) {
	for _, l := range slices.Concat(r.Pods, r.Devices) {
		out = append(out, netstate.Change{Do: netstate.DelLink, Link: l})
	}
	for _, rule := range r.Restore {
		out = append(out, netstate.Change{Do: netstate.AddRule, Rule: rule})
	}
	for _, rule := range r.Rules {
		out = append(out, netstate.Change{Do: netstate.DelRule, Rule: rule})
	}
	for _, a := range r.Addresses {
		link, _ := now.Link(a.Link)
		out = append(out, netstate.Change{Do: netstate.DelAddress, Link: link, Address: a})
	}
	for _, route := range r.Routes {
		link, _ := now.Link(route.Link)
		out = append(out, netstate.Change{Do: netstate.DelRoute, Link: link, Route: route})
	}
	return out
}

// Leftovers finds our objects in a kernel, whatever settings created them, except those
// that another program could have created.
func Leftovers(k Kernel) Remnants {
	var r Remnants
	for _, l := range k.Links {
		_, branch := netnames.VLANOfDevice(l.Name)
		switch {
		case branch && l.Kind == "vlan":
			r.Devices = append(r.Devices, l)
		case l.Kind == "veth" && k.leadsToPod(l):
			r.Pods = append(r.Pods, l)
		}
	}
	managed := k.managed(r.Devices)
	for _, rule := range k.Rules {
		if ours(rule) && !k.othersENI(rule, managed) {
			r.Rules = append(r.Rules, rule)
		}
	}
	for _, m := range managed {
		r.Kept = append(r.Kept, m.String())
	}
	for _, ipv6 := range []bool{false, true} {
		kernels := localRule(netnames.RuleLocal, ipv6)
		if slices.Contains(r.Rules, localRule(netnames.RuleLocalStrict, ipv6)) && !slices.Contains(k.Rules, kernels) {
			r.Restore = append(r.Restore, kernels)
		}
	}
	enis := slices.DeleteFunc(k.enis(r), func(e eniLeftovers) bool { return isManaged(managed, e.link) })
	for _, e := range enis {
		r.Routes = append(r.Routes, e.routes...)
	}
	for _, a := range k.Addresses {
		if k.ofENI(a, r.Rules, enis) && !isManaged(managed, a.Link) {
			r.Addresses = append(r.Addresses, a)
		}
	}
	return r
}

// ours recognises the rules of the node, its ENIs and its pods.
func ours(r netstate.Rule) bool {
	switch {
	case r == localRule(netnames.RuleLocal, r.IPv6):
		return false
	case ofNode(r), OfENI(r), ofBranch(r):
		return true
	case r.Restricted() || r.Mark != 0:
		return false
	}
	to, from := r.To.IsValid() && r.To.IsSingleIP(), r.From.IsValid() && r.From.IsSingleIP()
	switch r.Priority {
	case netnames.RuleToPod:
		return to && !r.From.IsValid() && r.Table == netnames.MainTable
	case netnames.RuleFromPod: // old releases had one per VPC range
		return from && (netnames.IsENITable(r.Table) || isBranchTable(r.Table))
	}
	return false
}

// OfENI recognises the rule of a secondary ENI: from one address to a table that can belong
// to an ENI.
func OfENI(r netstate.Rule) bool {
	return r.Priority == netnames.RuleFromENI && r.From.IsValid() && r.From.IsSingleIP() && !r.To.IsValid() &&
		r.Mark == 0 && !r.Restricted() && netnames.IsENITable(r.Table)
}

// ofBranch recognises the rules of a branch pod in strict mode.
func ofBranch(r netstate.Rule) bool {
	if r.Priority != netnames.RuleBranch || r.InLink == "" || !isBranchTable(r.Table) ||
		r != (netstate.Rule{Priority: r.Priority, InLink: r.InLink, Table: r.Table, IPv6: r.IPv6}) {
		return false
	}
	if vlan, ok := netnames.VLANOfDevice(r.InLink); ok {
		table, _ := netnames.BranchTable(vlan)
		return table == r.Table
	}
	return isPodLink(r.InLink, netnames.BranchVethPrefix)
}

func isBranchTable(table int) bool {
	_, ok := netnames.BranchTable(table - 100)
	return ok
}

// isPodLink reports whether a link's name is one that pods with that prefix get.
func isPodLink(name, prefix string) bool {
	hash, ok := strings.CutPrefix(name, prefix)
	return ok && len(hash) == len(netnames.Hash("", "", 0)) && strings.Trim(hash, "0123456789abcdef") == ""
}

// leadsToPod reports whether a veth leads to a living pod: by its name and a route to an
// address, or by a route to an egress address, for which the link may have any name.
func (k Kernel) leadsToPod(link netstate.Link) bool {
	named := slices.ContainsFunc([]string{k.VethPrefix, netnames.DefaultVethPrefix, netnames.BranchVethPrefix},
		func(prefix string) bool { return prefix != "" && isPodLink(link.Name, prefix) })
	return slices.ContainsFunc(k.Routes, func(r netstate.Route) bool {
		if r.Link != link.Index || !r.Dst.IsSingleIP() || r.Gateway.IsValid() {
			return false
		}
		return named && (r.Table == netnames.MainTable || isBranchTable(r.Table)) ||
			r.Table == netnames.MainTable && IsEgressAddress(r.Dst.Addr())
	})
}

// eniLeftovers is what one table holds of a secondary ENI.
type eniLeftovers struct {
	link    int32
	gateway netip.Addr
	table   int
	routes  []netstate.Route
}

// enis finds the tables of secondary ENIs: those with a default route through a router and
// the route to that router on the same link, or with the default route alone if an ENI's
// rule leads to the table. A link that main's default route uses belongs to the primary ENI
// or to another program.
func (k Kernel) enis(r Remnants) (out []eniLeftovers) {
	for _, d := range k.Routes {
		if d.Link == 0 || !netnames.IsENITable(d.Table) || d.Dst.Bits() != 0 || !d.Gateway.IsValid() || k.carriesDefault(d.Link) ||
			hasLink(r.Devices, d.Link) || hasLink(r.Pods, d.Link) {
			continue
		}
		toRouter := netstate.Direct(netstate.Only(d.Gateway), d.Link, d.Table)
		paired := slices.ContainsFunc(k.Routes, toRouter.SamePath)
		ruled := slices.ContainsFunc(r.Rules, func(rule netstate.Rule) bool {
			return OfENI(rule) && rule.Table == d.Table && rule.IPv6 == d.Gateway.Is6()
		})
		if !paired && !ruled {
			continue
		}
		e := eniLeftovers{link: d.Link, gateway: d.Gateway, table: d.Table, routes: []netstate.Route{d}}
		for _, o := range k.Routes {
			if toRouter.SamePath(o) {
				e.routes = append(e.routes, o)
			}
		}
		out = append(out, e)
	}
	return out
}

func hasLink(list []netstate.Link, index int32) bool {
	return slices.ContainsFunc(list, func(l netstate.Link) bool { return l.Index == index })
}

func (k Kernel) carriesDefault(link int32) bool {
	return slices.ContainsFunc(k.Routes, func(r netstate.Route) bool {
		return r.Link == link && r.Table == netnames.MainTable && r.Dst.Bits() == 0
	})
}

// ofENI recognises an address that was given to a secondary ENI: it is the source of an
// ENI's rule, or is on the link of an ENI. On the link, IPv4 addresses count if their
// subnet's router is the ENI's gateway. IPv6 addresses all count, since an ENI is given one
// and loses others.
func (k Kernel) ofENI(a netstate.Address, list []netstate.Rule, enis []eniLeftovers) bool {
	addr := a.Prefix.Addr()
	if !addr.IsGlobalUnicast() || k.carriesDefault(a.Link) {
		return false
	}
	return slices.ContainsFunc(list, func(r netstate.Rule) bool { return OfENI(r) && r.From == netstate.Only(addr) }) ||
		slices.ContainsFunc(enis, func(e eniLeftovers) bool {
			router := a.Prefix.Masked().Addr().Next()
			if addr.Is6() {
				router = netnames.BranchGatewayIPv6()
			}
			return e.link == a.Link && e.gateway == router
		})
}
