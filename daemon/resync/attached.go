package resync

import (
	"net/netip"

	"cnictl/daemon/ipam"
)

// Attached is one managed ENI as EC2 describes it.
type Attached struct {
	ENI          ipam.ENI
	CIDRs        []netip.Prefix
	AttachmentID string
	Tags         map[string]string
}

// Adopt returns the events that bring what EC2 has, and the book lacks, into the
// book. It never removes anything. A CIDR that the book cannot take, because a part of
// it is on another ENI there (it has moved, and the view is older), is left out.
func Adopt(book ipam.Snapshot, view []Attached) []ipam.Event {
	known := make(map[ipam.ENIID]bool, len(book.ENIs))
	for i := range book.ENIs {
		known[book.ENIs[i].ID] = true
	}
	index := indexOf(&book)
	var events []ipam.Event
	for _, a := range view {
		var fresh []netip.Prefix
		for _, p := range a.CIDRs {
			if !ipam.ValidCIDR(p) || p.Contains(a.ENI.PrimaryIP) {
				continue
			}
			if _, taken := index.overlap(p); !taken {
				index[p] = a.ENI.ID
				fresh = append(fresh, p)
			}
		}
		switch {
		case !known[a.ENI.ID]:
			known[a.ENI.ID] = true
			events = append(events, ipam.AttachENI{ENI: a.ENI, CIDRs: fresh})
		case len(fresh) > 0:
			events = append(events, ipam.AddCIDRs{ID: a.ENI.ID, CIDRs: fresh})
		}
	}
	return events
}
