package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"cnictl/daemon/api/netnames"
)

// managedENI is a secondary ENI that the AMI's network configuration keeps (of
// systemd-networkd or ec2-net-utils): with an address of a DHCP client, or a rule like an
// ENI's that its maker signed. Daemons, upstream included, make addresses without a
// lifetime and rules without a name, and leave what they find in place of their own.
type managedENI struct {
	link string
	why  string
}

// String says what stays.
func (m managedENI) String() string {
	return fmt.Sprintf("link %s, with its addresses, rules of priority %d and routes: %s, so the node's own network configuration keeps it", m.link, netnames.RuleFromENI, m.why)
}

// managed finds the ENIs of others that have a table or a rule like ours.
func (k Kernel) managed(branches []string) (out []managedENI) {
	for _, l := range k.Links {
		if k.carriesDefault(l.Name) || slices.Contains(branches, l.Name) || !k.looksLikeENI(l.Name) {
			continue
		}
		if why := k.keeper(l.Name); why != "" {
			out = append(out, managedENI{l.Name, why})
		}
	}
	return out
}

// looksLikeENI reports whether a link has a default route in an ENI's table, or a rule of
// an ENI is about its address.
func (k Kernel) looksLikeENI(link string) bool {
	return slices.ContainsFunc(k.Routes, func(r LinkRoute) bool {
		return r.Link == link && netnames.IsENITable(r.Table) && r.Dst.Bits() == 0
	}) || slices.ContainsFunc(k.Rules, func(r IPRule) bool { return OfENI(r) && k.has(link, r.From.Addr()) })
}

// keeper says how it shows that others configure an ENI; empty: it does not.
func (k Kernel) keeper(link string) string {
	for _, a := range k.Addresses {
		if a.Link == link && a.Leased && a.Prefix.Addr().IsGlobalUnicast() {
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
func (k Kernel) has(link string, addr netip.Addr) bool {
	return slices.ContainsFunc(k.Addresses, func(a LinkAddress) bool { return a.Link == link && a.Prefix.Addr() == addr })
}

// othersENI tells a rule like an ENI's that others made, or of an ENI that they configure.
func (k Kernel) othersENI(r IPRule, managed []managedENI) bool {
	return OfENI(r) && (slices.Contains(k.Signed, r) ||
		slices.ContainsFunc(managed, func(m managedENI) bool { return k.has(m.link, r.From.Addr()) }))
}

func isManaged(list []managedENI, link string) bool {
	return slices.ContainsFunc(list, func(m managedENI) bool { return m.link == link })
}
