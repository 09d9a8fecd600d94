package hostnet

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// ipRules lists the policy rules of a family. A rule whose link is gone matches nothing, so
// it does not count as ours.
func ipRules(c *rtnl.Conn, family uint8) ([]netstate.Rule, error) {
	list, err := c.ListedRules(family)
	out := make([]netstate.Rule, len(list))
	for i, r := range list {
		out[i] = r.Rule
		out[i].Other = r.Other || r.Detached
	}
	return out, err
}

// readState reads the kernel's links, and the addresses, routes and rules of some families.
func readState(c *rtnl.Conn, families ...uint8) (netstate.State, error) {
	links, err := c.Links()
	if err != nil {
		return netstate.State{}, err
	}
	return readStateOf(c, links, families...)
}

// readStateOf is readState with known links: listing all pods' links is most of the cost.
func readStateOf(c *rtnl.Conn, links []netstate.Link, families ...uint8) (netstate.State, error) {
	s := netstate.State{Links: links}
	for _, family := range families {
		addresses, err := c.Addresses(family)
		if err != nil {
			return s, err
		}
		routes, err := c.AllRoutes(family)
		if err != nil {
			return s, err
		}
		rules, err := ipRules(c, family)
		if err != nil {
			return s, err
		}
		s.Addresses, s.Routes, s.Rules = append(s.Addresses, addresses...), append(s.Routes, routes...), append(s.Rules, rules...)
	}
	return s, nil
}

// do applies changes in one batch: message i is the i-th change.
func do(c *rtnl.Conn, changes []netstate.Change) error {
	var b rtnl.Batch
	for _, change := range changes {
		b.Change(change)
	}
	return c.Do(&b)
}

func familyBy(ipv6 bool) uint8 {
	if ipv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}
