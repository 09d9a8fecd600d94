package resync

import (
	"net/netip"
	"slices"

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
// book. It never removes anything.
func Adopt(book ipam.Snapshot, view []Attached) []ipam.Event {
	known := make(map[ipam.ENIID]ipam.ENIState, len(book.ENIs))
	for _, e := range book.ENIs {
		known[e.ID] = e
	}
	var events []ipam.Event
	for _, a := range view {
		state, ok := known[a.ENI.ID]
		if !ok {
			events = append(events, ipam.AttachENI{ENI: a.ENI, CIDRs: a.CIDRs})
			continue
		}
		var missing []netip.Prefix
		for _, c := range a.CIDRs {
			if !slices.ContainsFunc(state.CIDRs, func(s ipam.CIDRState) bool { return s.Prefix == c }) {
				missing = append(missing, c)
			}
		}
		if len(missing) > 0 {
			events = append(events, ipam.AddCIDRs{ID: a.ENI.ID, CIDRs: missing})
		}
	}
	return events
}
