package fleetsim

import (
	"net"
	"strconv"

	"cnictl/daemon/api/introspect"
)

// ourENIs returns our daemon's /v1/enis.
func (w *world) ourENIs() introspect.ENIs {
	doc := introspect.ENIs{"0": {ENIs: map[string]introspect.ENI{}}}
	snap := w.Book.Snapshot()
	for i := range snap.ENIs {
		e := &snap.ENIs[i]
		if e.Held {
			continue
		}
		key := strconv.Itoa(e.Card)
		card := doc[key]
		if card.ENIs == nil {
			card.ENIs = map[string]introspect.ENI{}
		}
		out := introspect.ENI{
			ID: string(e.ID), IsPrimary: e.Primary, IsTrunk: e.Trunk, IsEFA: e.EFA, DeviceNumber: e.Device,
			AvailableIPv4Cidrs: map[string]introspect.CIDR{}, IPv6Cidrs: map[string]introspect.CIDR{},
			IsExcludedForPodIPs: e.Excluded, RouteTableID: e.RouteTable, SubnetID: e.SubnetID,
		}
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			if c.Held {
				continue
			}
			card.TotalIPs += size(c.Prefix)
			card.AssignedIPs += c.Assigned
			cidr := introspect.CIDR{
				Cidr:        introspect.IPNet{IP: c.Prefix.Addr().String(), Mask: net.CIDRMask(c.Prefix.Bits(), c.Prefix.Addr().BitLen())},
				IPAddresses: map[string]introspect.Address{}, IsPrefix: c.IsPrefix(),
			}
			for _, r := range c.Records {
				a := introspect.Address{Address: r.Address.String(), AssignedTime: r.AssignedAt.UTC(), UnassignedTime: r.UnassignedAt.UTC()}
				if r.Assigned() {
					a.IPAMKey.NetworkName = r.Sandbox.Network
					a.IPAMMetadata = introspect.IPAMMetadata{PodNamespace: r.Pod.Namespace, PodName: w.node.garble(r.Pod.Name), Interfaces: 1}
				}
				cidr.IPAddresses[a.Address] = a
			}
			cidrs := out.AvailableIPv4Cidrs
			if !c.Prefix.Addr().Is4() {
				cidrs = out.IPv6Cidrs
			}
			cidrs[c.Prefix.String()] = cidr
		}
		if w.node.has(Lying) {
			card.TotalIPs, card.AssignedIPs = card.TotalIPs+3, -1
		}
		card.ENIs[out.ID] = out
		doc[key] = card
	}
	return doc
}
