package resync

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

// Attached is one managed ENI as EC2 describes it.
type Attached struct {
	ENI          ipam.ENI
	CIDRs        []netip.Prefix
	AttachmentID string
	Tags         map[string]string
}

// Adopt returns the events that add to the book what EC2 has and the book lacks. It never
// removes anything. It leaves out a CIDR that the book cannot accept because a part of it is
// on another ENI there (the CIDR has moved, and the view is older).
func Adopt(book ipam.Snapshot, view []Attached) []ipam.Event {
	known := make(map[ipam.ENIID]netip.Addr, len(book.ENIs)) // to the primary address
	for i := range book.ENIs {
		known[book.ENIs[i].ID] = book.ENIs[i].PrimaryIP
	}
	index := indexOf(&book)
	var events []ipam.Event
	for _, a := range view {
		primary, there := known[a.ENI.ID] // the view may be older, or lack the address
		var fresh []netip.Prefix
		for _, p := range a.CIDRs {
			if !ipam.ValidCIDR(p) || p.Contains(a.ENI.PrimaryIP) || p.Contains(primary) {
				continue
			}
			if _, taken := index.overlap(p); !taken {
				index[p] = a.ENI.ID
				fresh = append(fresh, p)
			}
		}
		switch {
		case !there:
			known[a.ENI.ID] = a.ENI.PrimaryIP
			events = append(events, ipam.AttachENI{ENI: a.ENI, CIDRs: fresh})
		case len(fresh) > 0:
			events = append(events, ipam.AddCIDRs{ID: a.ENI.ID, CIDRs: fresh})
		}
	}
	return events
}

// AttachedInput is an attached ENI as shown by all sources.
type AttachedInput struct {
	ENI      ENI       // as EC2 describes it
	Subnet   Subnet    // zero if unknown
	Shown    Interface // as the metadata shows it; zero if it does not
	Primary  bool
	Excluded bool
	IPv6     bool // of an IPv6 cluster
	Now      time.Time
}

// AttachedOf returns an ENI for the book, with all its CIDRs of the family.
func AttachedOf(in AttachedInput) Attached {
	d := in.ENI
	device := d.Device
	if in.Primary {
		device = 0
	}
	subnet, shown := in.Subnet.CIDR, in.Shown.SubnetCIDR
	if in.IPv6 {
		subnet, shown = in.Subnet.IPv6CIDR, in.Shown.SubnetIPv6CIDR
	}
	if shown.IsValid() {
		subnet = shown
	}
	return Attached{
		ENI: ipam.ENI{
			ID: d.ID, MAC: d.MAC, Card: d.Card, Device: device, Primary: in.Primary, Trunk: d.Trunk(), EFA: d.EFA(),
			Excluded: in.Excluded, SubnetID: d.SubnetID, Subnet: subnet, PrimaryIP: d.PrimaryOf(in.IPv6),
			RouteTable: netnames.RouteTable(d.Card, device), AttachedAt: in.Now,
		},
		CIDRs: d.CIDRsOf(in.IPv6), AttachmentID: d.AttachmentID, Tags: d.Tags,
	}
}
