package sim

import (
	"cmp"
	"net/netip"
	"slices"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// metadata is what a node's metadata service shows. It lags behind EC2, for additions and
// removals.
type metadata struct {
	w     *World
	node  *node
	shown map[ipam.ENIID]resync.Interface
}

// refresh shows the current state of an ENI after the lag.
func (m *metadata) refresh(x *eni) {
	m.w.after(m.node.metadataLag(), func() { m.show(x) })
}

func (m *metadata) show(x *eni) {
	if x.node != m.node || x.AttachmentStatus == statusAttaching || m.w.ec2.enis[x.ID] != x {
		delete(m.shown, x.ID)
		return
	}
	m.shown[x.ID] = resync.Interface{
		MAC: x.MAC, ENI: x.ID, Device: x.Device, SubnetID: x.SubnetID, SubnetCIDR: x.subnet.cidr,
		IPv4s: append([]netip.Addr{x.PrimaryIP}, x.SecondaryIPs...), Prefixes: slices.Clone(x.Prefixes),
	}
}

// list returns what a reader sees, ordered by device.
func (m *metadata) list() []resync.Interface {
	out := make([]resync.Interface, 0, len(m.shown))
	for _, f := range m.shown {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b resync.Interface) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.ENI, b.ENI))
	})
	if len(out) > 0 && m.w.strike(m.w.Scenario.HostFaults, FaultUnread) {
		f := &out[m.w.dice.faults.Below(len(out))]
		if m.w.dice.faults.chance(0.5) {
			f.IPv4s, f.Unread = f.IPv4s[:1], resync.PartIPv4s
		} else {
			f.Prefixes, f.Unread = nil, resync.PartPrefixes
		}
	}
	return out
}
