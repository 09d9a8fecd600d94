package hostnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// SetupENI configures a secondary ENI. It waits for the link with the MAC, up to the
// end of ctx. Repeating it repairs what is missing and writes nothing if nothing is.
func (h *Host) SetupENI(ctx context.Context, in rules.ENIInput) error {
	if err := in.Validate(); err != nil {
		return err
	}
	link, err := waitLink(ctx, in.MAC)
	if err != nil {
		return &LinkError{MAC: in.MAC, Err: err}
	}
	want := rules.ENI(in)
	return with(func(c *rtnl.Conn) error {
		err := h.retryRoutes(ctx, func() error { return h.settleENI(c, in, link.Index, want) })
		if err != nil {
			return fmt.Errorf("set up ENI %s on link %s: %w", in.MAC, link.Name, err)
		}
		return nil
	})
}

// LinkError is an ENI whose link did not appear in time.
type LinkError struct {
	MAC string
	Err error
}

func (e *LinkError) Error() string { return fmt.Sprintf(textNoENI+": %v", e.MAC, e.Err) }

func (e *LinkError) Unwrap() error { return e.Err }

// Routes of an ENI are tried five times: the first pause doubles up to 5 s, with up
// to 15 % on top.
const (
	routeTries      = 5
	routeBackoffMax = 5 * time.Second
	routeJitter     = 0.15
)

// retryRoutes runs f until it fails with something else than a refused route.
func (h *Host) retryRoutes(ctx context.Context, f func() error) error {
	pause := h.opts.RouteBackoff
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == routeTries || !refusedRoute(err) {
			return err
		}
		h.opts.Log.Warn("route of an ENI refused, trying again", "error", err, "attempt", try)
		timer := time.NewTimer(pause + time.Duration(rand.Float64()*routeJitter*float64(pause)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		pause = min(2*pause, routeBackoffMax)
	}
}

func refusedRoute(err error) bool {
	var failed *rtnl.Error
	return errors.As(err, &failed) && (failed.Op == "replace route" || failed.Op == "delete route")
}

// settleENI changes what differs until nothing does. Deleting a foreign address can
// take ours of the same subnet with it, so one round is not always enough.
func (h *Host) settleENI(c *rtnl.Conn, in rules.ENIInput, link int32, want rules.ENIState) error {
	const rounds = 4
	for range rounds {
		now, err := readENI(c, link, want)
		if err != nil {
			return err
		}
		var b rtnl.Batch
		now.change(&b, in, want)
		if b.Len() == 0 {
			return nil
		}
		h.opts.Log.Info("ENI is being configured", "link", now.link.Name, "changes", b.Len(), "table", in.Table())
		crashpoint.Here(crashpoint.BeforeENISetUp)
		if err := c.Do(&b); err != nil {
			return err
		}
		crashpoint.Here(crashpoint.AfterENISetUp)
	}
	return errors.New("its addresses, routes or rules keep changing: something else manages the link")
}

// eniView is what the kernel has for an ENI.
type eniView struct {
	link      rtnl.Link
	addresses []rtnl.Address // of the link
	table     []rtnl.Route
	main      []rtnl.Route
	rules     []rules.IPRule
}

func readENI(c *rtnl.Conn, index int32, want rules.ENIState) (v eniView, err error) {
	var ok bool
	if v.link, ok, err = c.LinkByIndex(index); err != nil {
		return v, err
	}
	if !ok {
		return v, fmt.Errorf("link %d is gone: %w", index, unix.ENODEV)
	}
	family := familyBy(want.IPv6)
	all, err := c.Addresses(family)
	if err != nil {
		return v, err
	}
	v.addresses = slices.DeleteFunc(all, func(a rtnl.Address) bool { return a.Link != index })
	if v.table, err = c.Routes(family, want.Routes[0].Table); err != nil {
		return v, err
	}
	if v.main, err = c.Routes(family, netnames.MainTable); err != nil {
		return v, err
	}
	v.rules, err = ipRules(c, family)
	return v, err
}

// change appends the messages that lead from the view to the wanted state.
func (v eniView) change(b *rtnl.Batch, in rules.ENIInput, want rules.ENIState) {
	index := v.link.Index
	if want.MTU != 0 && v.link.MTU != want.MTU {
		b.LinkMTU(index, want.MTU)
	}
	// An address that comes, and a link that comes up, bring the route to the subnet
	// in main with them.
	up := v.link.Flags&unix.IFF_UP != 0
	if !up {
		b.LinkUp(index)
	}
	added := v.changeAddresses(b, want)
	v.changeTable(b, want)
	if want.Unwanted != nil {
		unwanted := netlinkRoute(*want.Unwanted, index)
		if added || !up || slices.Contains(v.main, unwanted) {
			b.RouteDel(unwanted)
			b.Tolerate(unix.ESRCH)
		}
	}
	if want.Rule != nil && !v.hasRule(in, *want.Rule) {
		b.RuleAdd(netlinkRule(*want.Rule))
		b.Tolerate(unix.EEXIST)
	}
}

// changeTable puts the wanted routes into the ENI's table and takes others to the
// same destinations out: the kernel would use whichever it lists first.
func (v eniView) changeTable(b *rtnl.Batch, want rules.ENIState) {
	for _, r := range want.Routes {
		route := netlinkRoute(r, v.link.Index)
		if !slices.Contains(v.table, route) {
			b.RouteReplace(route)
		}
		for _, other := range v.table {
			if other.Dst == route.Dst && other != route {
				b.RouteDel(other)
				b.Tolerate(unix.ESRCH)
			}
		}
	}
}

// changeAddresses leaves the wanted address alone on the link, besides link-local
// ones. Where none is wanted the addresses are somebody else's.
func (v eniView) changeAddresses(b *rtnl.Batch, want rules.ENIState) (added bool) {
	if !want.Address.IsValid() {
		return false
	}
	there := false
	for _, a := range v.addresses {
		switch {
		case a.Prefix == want.Address:
			there = true
		case a.Prefix.Addr().IsGlobalUnicast():
			b.AddrDel(rtnl.Address{Link: a.Link, Prefix: a.Prefix})
			b.Tolerate(unix.EADDRNOTAVAIL)
		}
	}
	if there {
		return false
	}
	// EC2 gives an address to one ENI only: there are no duplicates to look for.
	b.AddrReplace(rtnl.Address{Link: v.link.Index, Prefix: want.Address, NoDAD: want.IPv6, Broadcast: broadcast(want.Address)})
	return true
}

// broadcast is the last address of an IPv4 range; IPv6 has none.
func broadcast(p netip.Prefix) netip.Addr {
	if !p.Addr().Is4() {
		return netip.Addr{}
	}
	a := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a)
}

// hasRule reports whether the rule is there. On further network cards any rule for
// the address counts: an AMI or an older release made it, and its table is in use.
func (v eniView) hasRule(in rules.ENIInput, want rules.IPRule) bool {
	return slices.ContainsFunc(v.rules, func(r rules.IPRule) bool {
		return r == want || in.Card > 0 && r.From == want.From
	})
}

func netlinkRoute(r rules.Route, link int32) rtnl.Route {
	out := rtnl.Route{Dst: r.Dst, Gateway: r.Gateway, Source: r.Source, Link: link, Table: r.Table}
	if !r.Gateway.IsValid() {
		out.Scope = onLink(r.Dst.Addr())
	}
	return out
}

// onLink is the scope of a route without a gateway. IPv6 routes have none.
func onLink(dst netip.Addr) rtnl.Scope {
	if dst.Is4() {
		return rtnl.OnLink
	}
	return rtnl.Universe
}
