package introspectserver

import (
	"net"
	"net/netip"
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

// ENIs converts the address book to the /v1/enis document. It leaves out what is being
// returned to EC2 (held), as upstream removes it from its store first. The container id and
// the interface name are blanked.
func ENIs(s ipam.Snapshot) introspect.ENIs {
	doc := introspect.ENIs{}
	for _, e := range s.ENIs {
		key := strconv.Itoa(e.Card)
		card, ok := doc[key]
		if !ok {
			card.ENIs = map[string]introspect.ENI{}
		}
		if !e.Held {
			eni, total, assigned := convertENI(e)
			card.ENIs[eni.ID] = eni
			card.TotalIPs += total
			card.AssignedIPs += assigned
		}
		doc[key] = card
	}
	if len(doc) == 0 {
		// The pool of card 0 exists from the start.
		doc["0"] = introspect.Card{ENIs: map[string]introspect.ENI{}}
	}
	return doc
}

func convertENI(e ipam.ENIState) (eni introspect.ENI, total, assigned int) {
	eni = introspect.ENI{
		ID: string(e.ID), IsPrimary: e.Primary, IsTrunk: e.Trunk, IsEFA: e.EFA, DeviceNumber: e.Device,
		AvailableIPv4Cidrs: map[string]introspect.CIDR{}, IPv6Cidrs: map[string]introspect.CIDR{},
		IsExcludedForPodIPs: e.Excluded, RouteTableID: e.RouteTable, SubnetID: e.SubnetID,
	}
	for _, c := range e.CIDRs {
		if c.Held {
			continue
		}
		total += size(c.Prefix)
		assigned += c.Assigned
		if c.Prefix.Addr().Is4() {
			eni.AvailableIPv4Cidrs[c.Prefix.String()] = convertCIDR(c)
		} else {
			eni.IPv6Cidrs[c.Prefix.String()] = convertCIDR(c)
		}
	}
	return eni, total, assigned
}

func convertCIDR(c ipam.CIDRState) introspect.CIDR {
	addrs := make(map[string]introspect.Address, len(c.Records))
	for _, r := range c.Records {
		a := introspect.Address{Address: r.Address.String(), AssignedTime: r.AssignedAt, UnassignedTime: r.UnassignedAt}
		if r.Assigned() {
			a.IPAMKey.NetworkName = r.Sandbox.Network
			a.IPAMMetadata = introspect.IPAMMetadata{PodNamespace: r.Pod.Namespace, PodName: r.Pod.Name, Interfaces: r.Pod.Interfaces}
		}
		addrs[a.Address] = a
	}
	addr := c.Prefix.Addr()
	return introspect.CIDR{
		Cidr:        introspect.IPNet{IP: addr.String(), Mask: net.CIDRMask(c.Prefix.Bits(), addr.BitLen())},
		IPAddresses: addrs,
		IsPrefix:    c.IsPrefix(),
	}
}

// size returns the number of addresses in a CIDR: at most 2^48, for a /80.
func size(p netip.Prefix) int { return 1 << (p.Addr().BitLen() - p.Bits()) }
