package hostnet

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// ipRules lists the policy rules of a family.
func ipRules(c *rtnl.Conn, family uint8) ([]rules.IPRule, error) {
	list, err := c.Rules(family)
	if err != nil {
		return nil, err
	}
	out := make([]rules.IPRule, len(list))
	for i, r := range list {
		out[i] = wantedForm(r)
		out[i].Other = r.Other || r.InLinkGone
	}
	return out, nil
}

func wantedForm(r rtnl.Rule) rules.IPRule {
	return rules.IPRule{
		Priority: r.Priority, From: r.From, To: r.To, Mark: r.Mark, Mask: r.Mask, InLink: r.InLink,
		Protocol: r.Protocol, Table: r.Table, IPv6: r.IPv6, Other: r.Other,
	}
}

func netlinkRule(r rules.IPRule) rtnl.Rule {
	return rtnl.Rule{
		Priority: r.Priority, From: r.From, To: r.To, Mark: r.Mark, Mask: r.Mask, InLink: r.InLink,
		Protocol: r.Protocol, Table: r.Table, IPv6: r.IPv6,
	}
}

// changeRules adds and then removes, in one batch: message i is add[i], then
// remove[i-len(add)]. What is already as asked is no error.
func changeRules(c *rtnl.Conn, add, remove []rules.IPRule) error {
	if len(add)+len(remove) == 0 {
		return nil
	}
	var b rtnl.Batch
	for _, r := range add {
		b.RuleAdd(netlinkRule(r))
		b.Tolerate(unix.EEXIST)
	}
	for _, r := range remove {
		b.RuleDel(netlinkRule(r))
		b.Tolerate(unix.ENOENT)
	}
	return c.Do(&b)
}

func familyOf(a netip.Addr) uint8 { return familyBy(!a.Is4()) }

func familyBy(ipv6 bool) uint8 {
	if ipv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}
