package imds

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/resync"
)

// Interface is a network interface as shown by the metadata.
type Interface = resync.Interface

// Interfaces reads all network interfaces, ordered by card, device and MAC. It fails if
// any read fails: a partial result would look like lost addresses.
func (c *Client) Interfaces(ctx context.Context) ([]Interface, error) {
	body, err := c.need(ctx, macsPath)
	if err != nil {
		return nil, err
	}
	macs, err := parseMACs(macsPath, body)
	if err != nil {
		return nil, err
	}
	if len(macs) == 0 {
		return nil, &AnswerError{macsPath, body, "at least the primary interface"}
	}
	names, err := c.listings(ctx, macs)
	if err != nil {
		return nil, err
	}
	out := make([]Interface, len(macs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, mac := range macs {
		if out[i].MAC, err = parseMAC(macsPath, mac); err != nil {
			return nil, err
		}
		c.readInterface(g, gctx, macsPath+mac+"/", names[i], &out[i])
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, mac := range macs {
		if err := check(out[i], macsPath+mac+"/"); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, compare)
	return out, nil
}

func compare(a, b Interface) int {
	switch {
	case a.Card != b.Card:
		return a.Card - b.Card
	case a.Device != b.Device:
		return a.Device - b.Device
	case a.MAC < b.MAC:
		return -1
	}
	return 1
}

// listings reads which values each interface has.
func (c *Client) listings(ctx context.Context, macs []string) ([]map[string]bool, error) {
	out := make([]map[string]bool, len(macs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, mac := range macs {
		into(g, gctx, c, macsPath+mac+"/", &out[i], parseNames)
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// readInterface starts the reads of one interface. Each writes a different field.
func (c *Client) readInterface(g *errgroup.Group, ctx context.Context, base string, names map[string]bool, to *Interface) {
	into(g, ctx, c, base+"interface-id", &to.ENI, parseENIID)
	into(g, ctx, c, base+"device-number", &to.Device, parseIndex)
	into(g, ctx, c, base+"subnet-id", &to.SubnetID, func(path, s string) (string, error) { return parseID(path, "subnet-", s) })
	into(g, ctx, c, base+"security-group-ids", &to.SecurityGroups, parseGroups)
	intoOptional(g, ctx, c, base+"subnet-ipv4-cidr-block", &to.SubnetCIDR, func(path, s string) (netip.Prefix, error) { return parseCIDR(path, s, ipv4Blocks) })
	intoOptional(g, ctx, c, base+"ipv4-prefix", &to.Prefixes, func(path, s string) ([]netip.Prefix, error) { return parseCIDRs(path, s, ipv4Prefixes) })
	if c.conf.IPv6 {
		intoOptional(g, ctx, c, base+"subnet-ipv6-cidr-blocks", &to.SubnetIPv6CIDR, func(path, s string) (netip.Prefix, error) { return parseCIDR(path, s, ipv6Blocks) })
		intoOptional(g, ctx, c, base+"ipv6-prefix", &to.IPv6Prefixes, func(path, s string) ([]netip.Prefix, error) { return parseCIDRs(path, s, ipv6Prefixes) })
	}
	// These three exist exactly when the listing names them.
	if names["network-card"] {
		intoOptional(g, ctx, c, base+"network-card", &to.Card, parseIndex)
	}
	if names["local-ipv4s"] {
		intoOptional(g, ctx, c, base+"local-ipv4s", &to.IPv4s, func(path, s string) ([]netip.Addr, error) { return parseAddrs(path, s, false) })
	}
	if names["ipv6s"] {
		intoOptional(g, ctx, c, base+"ipv6s", &to.IPv6s, func(path, s string) ([]netip.Addr, error) { return parseAddrs(path, s, true) })
	}
}

// intoOptional is into for a path where 404 means "none".
func intoOptional[T any](g *errgroup.Group, ctx context.Context, c *Client, path string, to *T, parse func(path, s string) (T, error)) {
	g.Go(func() error {
		body, found, err := c.get(ctx, path)
		if err != nil || !found {
			return err
		}
		*to, err = parse(path, body)
		return err
	})
}

// parseCIDR reads a list of exactly one CIDR.
func parseCIDR(path, s string, kind cidrKind) (netip.Prefix, error) {
	all, err := parseCIDRs(path, s, kind)
	if err != nil {
		return netip.Prefix{}, err
	}
	if len(all) != 1 {
		return netip.Prefix{}, &AnswerError{path, s, "one block: " + kind.want}
	}
	return all[0], nil
}

// check checks that an interface's addresses and prefixes are in its subnet.
func check(i Interface, base string) error {
	if err := checkWithin(i.SubnetCIDR, base+"local-ipv4s", i.IPv4s, base+"ipv4-prefix", i.Prefixes); err != nil {
		return err
	}
	return checkWithin(i.SubnetIPv6CIDR, base+"ipv6s", i.IPv6s, base+"ipv6-prefix", i.IPv6Prefixes)
}

// checkWithin checks one address family. Without a subnet block it checks nothing.
func checkWithin(subnet netip.Prefix, addrsPath string, addrs []netip.Addr, prefixesPath string, prefixes []netip.Prefix) error {
	if !subnet.IsValid() {
		return nil
	}
	for _, a := range addrs {
		if !subnet.Contains(a) {
			return &AnswerError{addrsPath, a.String(), fmt.Sprintf("addresses of the subnet %s", subnet)}
		}
	}
	for _, p := range prefixes {
		if p.Bits() < subnet.Bits() || !subnet.Contains(p.Addr()) {
			return &AnswerError{prefixesPath, p.String(), fmt.Sprintf("prefixes of the subnet %s", subnet)}
		}
	}
	return nil
}
