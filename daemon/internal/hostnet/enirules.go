package hostnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// TableFor finds an ENI's route table before the ENI is set up: the one for its card and
// device or, beyond the first network card, the one that an existing rule for its primary
// address leads to. enisPerCard is the card's limit.
func (h *Host) TableFor(_ context.Context, card, device int, primary netip.Addr, enisPerCard int) (int, error) {
	if card == 0 || !primary.IsValid() {
		return netnames.RouteTable(card, device), nil
	}
	var current []netstate.Rule
	err := with(func(c *rtnl.Conn) (err error) {
		current, err = ipRules(c, rtnl.Family(primary))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find route table of ENI address %s: %w", primary, err)
	}
	table := rules.ENITable(current, card, device, primary, enisPerCard)
	if computed := netnames.RouteTable(card, device); table != computed {
		h.opts.Log.Info("ENI keeps the route table of an existing rule", "ip", primary.String(), "table", table, "usual", computed)
	}
	return table, nil
}

// TeardownENI removes all policy rules whose source is a detached ENI's primary address.
// The ENI's routes and addresses went with the link. A zero address has no rules.
func (h *Host) TeardownENI(_ context.Context, primaryIP netip.Addr) error {
	if !primaryIP.IsValid() {
		return nil
	}
	host := netip.PrefixFrom(primaryIP, primaryIP.BitLen())
	return with(func(c *rtnl.Conn) error {
		list, err := c.Rules(rtnl.Family(primaryIP))
		if err != nil {
			return err
		}
		var b rtnl.Batch
		for _, r := range list {
			if r.From == host && !r.Other {
				b.RuleDel(r)
				b.Tolerate(unix.ENOENT)
			}
		}
		crashpoint.Here(crashpoint.BeforeENITearDown)
		if err := c.Do(&b); err != nil {
			return fmt.Errorf("remove rules of ENI address %s: %w", primaryIP, err)
		}
		crashpoint.Here(crashpoint.AfterENITearDown)
		return nil
	})
}

// DropENIRules removes the rules of detached ENIs: those that lead from a single address to
// a secondary ENI's table, if the address is not an attached ENI's primary address. A
// daemon that dies after a detach leaves such a rule behind, which would misroute the next
// pod with that address. DropENIRules returns the addresses. If attached has no address
// of a family, the rules of that family are not the daemon's and stay.
func (h *Host) DropENIRules(_ context.Context, attached []netip.Addr) ([]netip.Addr, error) {
	var gone []netip.Addr
	err := with(func(c *rtnl.Conn) error {
		for _, ipv6 := range []bool{false, true} {
			if !slices.ContainsFunc(attached, func(a netip.Addr) bool { return a.IsValid() && a.Is6() == ipv6 }) {
				continue
			}
			list, err := dropENIRules(c, familyBy(ipv6), attached)
			gone = append(gone, list...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("remove rules of ENIs that are gone: %w", err)
	}
	return gone, nil
}

func dropENIRules(c *rtnl.Conn, family uint8, attached []netip.Addr) (gone []netip.Addr, _ error) {
	list, err := ipRules(c, family)
	if err != nil {
		return nil, err
	}
	var b rtnl.Batch
	for _, r := range list {
		from := r.From.Addr()
		if !rules.OfENI(r) || slices.Contains(attached, from) {
			continue
		}
		gone = append(gone, from)
		b.RuleDel(r)
		b.Tolerate(unix.ENOENT)
	}
	return gone, c.Do(&b)
}
