package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// managedENI is a secondary ENI that the AMI's network configuration (systemd-networkd or
// ec2-net-utils) maintains. It has an address from a DHCP client, or a rule like an ENI's
// that names its maker. Daemons, upstream's included, add addresses without a lifetime and
// rules without a maker, and keep existing objects instead of adding their own.
type managedENI struct {
	link netstate.Link
	why  string
}

// String says what stays, and why.
func (m managedENI) String() string {
	return fmt.Sprintf("link %s, with its addresses, rules of priority %d and routes: %s, so the node's own network configuration keeps it", m.link.Name, netnames.RuleFromENI, m.why)
}

// managed finds the ENIs of other programs that have a table or a rule like ours.
func (k Kernel) managed(branches []netstate.Link) (out []managedENI) {
	for _, l := range k.Links {
		if k.carriesDefault(l.Index) || hasLink(branches, l.Index) || !k.looksLikeENI(l.Index) {
			continue
		}
		if why := k.keeper(l.Index); why != "" {
			out = append(out, managedENI{l, why})
		}
	}
	return out
}

// looksLikeENI reports whether a link has a default route in an ENI's table, or an address
// with an ENI's rule.
func (k Kernel) looksLikeENI(link int32) bool {
	return slices.ContainsFunc(k.Routes, func(r netstate.Route) bool {
		return r.Link == link && netnames.IsENITable(r.Table) && r.Dst.Bits() == 0
	}) || slices.ContainsFunc(k.Rules, func(r netstate.Rule) bool { return OfENI(r) && k.has(link, r.From.Addr()) })
}

// keeper returns the evidence that another program configures an ENI, or "".
func (k Kernel) keeper(link int32) string {
	for _, a := range k.Addresses {
		if a.Link == link && a.Expires && a.Prefix.Addr().IsGlobalUnicast() {
			return fmt.Sprintf("its address %s expires", a.Prefix)
		}
	}
	for _, r := range k.Signed {
		if OfENI(r) && k.has(link, r.From.Addr()) {
			return fmt.Sprintf("another program made the rule for %s", r.From.Addr())
		}
	}
	return ""
}

// has reports whether a link has an address.
func (k Kernel) has(link int32, addr netip.Addr) bool {
	return slices.ContainsFunc(k.Addresses, func(a netstate.Address) bool { return a.Link == link && a.Prefix.Addr() == addr })
}

// othersENI reports whether a rule like an ENI's was made by another program, or belongs to
// an ENI that another program configures.
func (k Kernel) othersENI(r netstate.Rule, managed []managedENI) bool {
	return OfENI(r) && (slices.Contains(k.Signed, r) ||
		slices.ContainsFunc(managed, func(m managedENI) bool { return k.has(m.link.Index, r.From.Addr()) }))
}

func isManaged(list []managedENI, link int32) bool {
	return slices.ContainsFunc(list, func(m managedENI) bool { return m.link.Index == link })
}
