package resync

import (
	"net/netip"

	"cnictl/daemon/ipam"
)

// cidrIndex maps CIDRs to their ENIs. Its CIDRs do not overlap, and each is a single address
// or a prefix of the one length of its family.
type cidrIndex map[netip.Prefix]ipam.ENIID

// indexOf collects the CIDRs of a book.
func indexOf(book *ipam.Snapshot) cidrIndex {
	n := 0
	for i := range book.ENIs {
		n += len(book.ENIs[i].CIDRs)
	}
	x := make(cidrIndex, n+n/4)
	for i := range book.ENIs {
		for j := range book.ENIs[i].CIDRs {
			x[book.ENIs[i].CIDRs[j].Prefix] = book.ENIs[i].ID
		}
	}
	return x
}

// indexAfter is indexOf after removals.
func indexAfter(book *ipam.Snapshot, removals []ipam.Event) cidrIndex {
	x := indexOf(book)
	for _, ev := range removals {
		switch ev := ev.(type) {
		case ipam.RemoveCIDRs:
			for _, p := range ev.CIDRs {
				delete(x, p)
			}
		case ipam.DetachENI:
			for i := range book.ENIs {
				if e := &book.ENIs[i]; e.ID == ev.ID {
					for j := range e.CIDRs {
						delete(x, e.CIDRs[j].Prefix)
					}
				}
			}
		}
	}
	return x
}

// overlap finds the ENI of a CIDR that overlaps a valid CIDR p, the one with the lowest ID if
// there are several.
func (x cidrIndex) overlap(p netip.Prefix) (ipam.ENIID, bool) {
	if id, taken := x[p]; taken {
		return id, true
	}
	if p.IsSingleIP() {
		bits := 28
		if p.Addr().Is6() {
			bits = 80
		}
		id, taken := x[netip.PrefixFrom(p.Addr(), bits).Masked()]
		return id, taken
	}
	found := ipam.ENIID("")
	for q, id := range x {
		if q.Overlaps(p) && (found == "" || id < found) {
			found = id
		}
	}
	return found, found != ""
}
