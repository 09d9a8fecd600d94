package hostnet

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// maxTableRoutes bounds the routes that an observation lists from other tables.
const maxTableRoutes = 64

// ObservePod reads the kernel's state for a pod's address. hostLink is the expected name of
// the pod's host link. It changes nothing and compares nothing, and refuses an address with
// a zone.
func (h *Host) ObservePod(ctx context.Context, addr netip.Addr, hostLink string) (introspect.PodKernel, error) {
	k := introspect.PodKernel{
		Rules: []introspect.PodRule{}, Routes: []introspect.PodRoute{}, Tables: []introspect.PodRoute{}, Neighbours: []introspect.PodNeighbour{},
	}
	addr = addr.Unmap()
	if !addr.IsValid() || addr.Zone() != "" {
		return k, fmt.Errorf("observe pod address %q: not an address of a pod", addr)
	}
	err := with(func(c *rtnl.Conn) error {
		links, err := c.Links()
		if err != nil {
			return err
		}
		names := make(map[int32]string, len(links))
		for _, l := range links {
			names[l.Index] = l.Name
			if l.Name == hostLink {
				k.Link = observedLink(l)
			}
		}
		if err := observeRules(c, addr, &k); err != nil {
			return err
		}
		if err := observeRoutes(ctx, c, addr, names, &k); err != nil {
			return err
		}
		return observeNeighbours(c, addr, names, &k)
	})
	if err != nil {
		return introspect.PodKernel{}, fmt.Errorf("observe pod address %s: %w", addr, err)
	}
	return k, nil
}

func observedLink(l netstate.Link) *introspect.PodLink {
	return &introspect.PodLink{
		Name: l.Name, Index: int(l.Index), Kind: l.Kind, MAC: l.MAC.String(), MTU: l.MTU,
		Up: l.Up(), Running: l.Running(),
	}
}

func observeRules(c *rtnl.Conn, addr netip.Addr, k *introspect.PodKernel) error {
	list, err := c.Rules(rtnl.Family(addr))
	if err != nil {
		return err
	}
	host := netip.PrefixFrom(addr, addr.BitLen())
	for _, r := range list {
		if r.From == host || r.To == host {
			k.Rules = append(k.Rules, introspect.PodRule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table})
		}
	}
	slices.SortStableFunc(k.Rules, func(a, b introspect.PodRule) int { return cmp.Compare(a.Priority, b.Priority) })
	return nil
}

// observeRoutes reads the routes to the address in the main table, and all routes of the
// tables that the address's rules lead to.
func observeRoutes(ctx context.Context, c *rtnl.Conn, addr netip.Addr, names map[int32]string, k *introspect.PodKernel) error {
	observed := func(r netstate.Route) introspect.PodRoute {
		return introspect.PodRoute{Table: r.Table, To: r.Dst, Gateway: r.Gateway, Link: names[r.Link]}
	}
	main, err := c.Routes(rtnl.Family(addr), netnames.MainTable)
	if err != nil {
		return err
	}
	for _, r := range main {
		if r.Dst.IsSingleIP() && r.Dst.Addr() == addr {
			k.Routes = append(k.Routes, observed(r))
		}
	}
	read := map[int]bool{netnames.MainTable: true}
	for _, rule := range k.Rules {
		if read[rule.Table] {
			continue
		}
		read[rule.Table] = true
		if err := ctx.Err(); err != nil {
			return err
		}
		routes, err := c.Routes(rtnl.Family(addr), rule.Table)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if len(k.Tables) < maxTableRoutes {
				k.Tables = append(k.Tables, observed(r))
			}
		}
	}
	return nil
}

var neighbourStates = map[uint16]string{
	unix.NUD_NONE: "none", unix.NUD_INCOMPLETE: "incomplete", unix.NUD_REACHABLE: "reachable", unix.NUD_STALE: "stale",
	unix.NUD_DELAY: "delay", unix.NUD_PROBE: "probe", unix.NUD_FAILED: "failed", unix.NUD_NOARP: "noarp", unix.NUD_PERMANENT: "permanent",
}

func observeNeighbours(c *rtnl.Conn, addr netip.Addr, names map[int32]string, k *introspect.PodKernel) error {
	list, err := c.Neighbours(rtnl.Family(addr))
	if err != nil {
		return err
	}
	for _, n := range list {
		if n.IP != addr {
			continue
		}
		o := introspect.PodNeighbour{Address: addr, Link: names[n.Link], State: neighbourStates[n.State]}
		if o.State == "" {
			o.State = fmt.Sprintf("%#x", n.State)
		}
		if n.MAC != (netstate.MAC{}) {
			o.MAC = n.MAC.String()
		}
		k.Neighbours = append(k.Neighbours, o)
	}
	return nil
}
