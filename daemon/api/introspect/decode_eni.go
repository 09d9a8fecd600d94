package introspect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
)

func (d *decoder) eni(card int, key string, e wireENI) (NodeENI, error) {
	n := NodeENI{
		ID: cmp.Or(e.ID, key), Card: card, Device: e.DeviceNumber,
		Primary: e.IsPrimary, Trunk: e.IsTrunk, EFA: e.IsEFA, RouteTable: e.RouteTableID, CIDRs: []NodeCIDR{},
	}
	if e.SubnetID != nil {
		d.saw(ShapeSubnets)
		n.SubnetID = *e.SubnetID
	}
	if e.IsExcludedForPodIPs != nil {
		d.saw(ShapeSubnets)
		n.Excluded = *e.IsExcludedForPodIPs
	}
	for _, s := range []string{n.ID, n.SubnetID} {
		if len(s) > maxName {
			return n, fmt.Errorf("a name of %d bytes", len(s))
		}
	}
	if n.Device < 0 || n.Device >= maxENIs {
		return n, fmt.Errorf("DeviceNumber is %d", n.Device)
	}
	if t := n.RouteTable; t != nil && (*t < 0 || *t > math.MaxUint32) {
		return n, fmt.Errorf("RouteTableID is %d", *t)
	}
	if err := d.cidrMaps(&n, e); err != nil {
		return n, err
	}
	slices.SortFunc(n.CIDRs, func(a, b NodeCIDR) int {
		return cmp.Or(a.CIDR.Addr().Compare(b.CIDR.Addr()), cmp.Compare(a.CIDR.Bits(), b.CIDR.Bits()))
	})
	return n, nil
}

func (d *decoder) cidrMaps(n *NodeENI, e wireENI) error {
	if e.IPv6Cidrs != nil {
		d.saw(ShapeFamilies)
	}
	if e.AvailableIPv4Cidrs != nil {
		d.saw(ShapeCIDRs)
	}
	if e.IPv4Addresses != nil {
		d.saw(ShapeAddresses)
		if e.AvailableIPv4Cidrs != nil || e.IPv6Cidrs != nil {
			return errors.New("it has both IPv4Addresses, of v1.8, and CIDRs, of later releases")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.IPv4Addresses)) {
		a := e.IPv4Addresses[key]
		addr, err := parseAddr(cmp.Or(a.Address, key))
		if err == nil && !addr.Is4() {
			err = errors.New("it is not of IPv4")
		}
		if err == nil {
			err = d.addCIDR(n, netip.PrefixFrom(addr, addr.BitLen()), map[string]wireAddress{key: a})
		}
		if err != nil {
			return fmt.Errorf("address %.60q: %w", key, err)
		}
	}
	for _, m := range []map[string]wireCIDR{e.AvailableIPv4Cidrs, e.IPv6Cidrs} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if err := d.cidr(n, key, m[key]); err != nil {
				return fmt.Errorf("CIDR %.60q: %w", key, err)
			}
		}
	}
	return nil
}

func (d *decoder) cidr(n *NodeENI, key string, c wireCIDR) error {
	prefix, err := c.prefix(key)
	if err != nil {
		return err
	}
	records := c.IPAddresses
	if c.IPAddresses != nil {
		d.saw(ShapeFamilies)
	}
	if c.IPv4Addresses != nil {
		if c.IPAddresses != nil {
			return errors.New("it has both IPv4Addresses, of v1.9, and IPAddresses, of later releases")
		}
		records = c.IPv4Addresses
	}
	return d.addCIDR(n, prefix, records)
}

func (d *decoder) addCIDR(n *NodeENI, prefix netip.Prefix, records map[string]wireAddress) error {
	if d.cidrs--; d.cidrs < 0 {
		return fmt.Errorf("more than %d CIDRs", maxCIDRs)
	}
	c := NodeCIDR{CIDR: prefix, Addresses: []NodeAddress{}}
	seen := make(map[netip.Addr]bool, len(records))
	for key, a := range records {
		if d.addresses--; d.addresses < 0 {
			return fmt.Errorf("more than %d address records", maxAddresses)
		}
		addr, err := parseAddr(cmp.Or(a.Address, key))
		if err != nil {
			return err
		}
		if !prefix.Contains(addr) || seen[addr] {
			return fmt.Errorf("address %s is outside of it or given twice", addr)
		}
		seen[addr] = true
		na, err := a.node(addr)
		if err != nil {
			return fmt.Errorf("address %s: %w", addr, err)
		}
		if a.IPAMKey.ContainerID != "" {
			d.saw(ShapeCards) // blanked since v1.23
		}
		if a.recorded() {
			c.Addresses = append(c.Addresses, na)
		}
	}
	slices.SortFunc(c.Addresses, func(a, b NodeAddress) int { return a.Address.Compare(b.Address) })
	n.CIDRs = append(n.CIDRs, c)
	return nil
}
