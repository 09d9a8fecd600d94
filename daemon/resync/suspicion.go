package resync

import (
	"fmt"
	"net/netip"
	"slices"

	"cnictl/daemon/ipam"
)

// This file looks for reasons to ask EC2. Without EC2's view nothing is changed.

func (r *reconciler) compareWithMetadata() {
	in := r.in
	if due := in.LastEC2.Add(in.Policy.EC2Every); in.Policy.EC2Every > 0 && !due.After(in.Now) {
		r.out.NeedEC2 = true
	}
	if len(in.Book.Unplaced) > 0 {
		r.suspect("", "allocations have an address that is on no known ENI")
	}
	r.quarantined()
	if in.Metadata.State != Known {
		return
	}
	inBook := make(map[ipam.ENIID]bool, len(in.Book.ENIs))
	for i := range in.Book.ENIs {
		e := &in.Book.ENIs[i]
		inBook[e.ID] = true
		if r.busy(e) || e.Quarantined() {
			continue
		}
		if f := r.shown[e.ID]; f != nil {
			r.differs(e, f)
		} else if !r.fresh(e, in.Metadata.At) {
			r.suspect(e.ID, "the instance metadata does not show this ENI")
		}
	}
	r.unknownENIs(inBook)
}

// suspect records that the metadata does not match the book.
func (r *reconciler) suspect(id ipam.ENIID, text string) {
	r.out.NeedEC2 = true
	r.note(Note{Kind: MetadataDiffers, ENI: id, Text: text + ": asking EC2"})
}

// quarantined requests EC2's view if anything is quarantined: EC2 shows it again or confirms
// that it is gone.
func (r *reconciler) quarantined() {
	for i := range r.in.Book.ENIs {
		e := &r.in.Book.ENIs[i]
		if e.Quarantined() || slices.ContainsFunc(e.CIDRs, ipam.CIDRState.Quarantined) {
			r.out.NeedEC2 = true
			return
		}
	}
}

// unknownENIs looks for ENIs that only the metadata shows, and for slots of other ENIs that
// have become free.
func (r *reconciler) unknownENIs(inBook map[ipam.ENIID]bool) {
	others := make(map[ipam.ENIID]bool, len(r.in.Others))
	for _, o := range r.in.Others {
		others[o.ID] = true
		switch {
		case r.shown[o.ID] == nil:
			r.suspect(o.ID, "the instance metadata does not show this unmanaged ENI any more")
		case o.Why != NotManaged: // it was being attached or detached, or EC2's list lagged: it may be ours by now
			r.suspect(o.ID, "EC2 did not list this ENI as attached")
		}
	}
	for i := range r.in.Metadata.Interfaces {
		f := &r.in.Metadata.Interfaces[i]
		switch {
		case inBook[f.ENI], others[f.ENI], r.busyENIs[f.ENI], r.busySlot(f.Card, f.Device):
		case f.Card > 0 && !r.in.Policy.MultiNIC:
		default:
			r.suspect(f.ENI, "the instance metadata shows an ENI that the book does not know")
		}
	}
}

// differs compares the CIDRs of an ENI. A list that could not be read never differs.
func (r *reconciler) differs(e *ipam.ENIState, f *Interface) {
	shown := r.metadata[:0]
	if r.in.Policy.IPv6 {
		shown = append(shown, f.IPv6Prefixes...)
	} else {
		for i, a := range f.IPv4s {
			if i > 0 && a != e.PrimaryIP {
				shown = append(shown, netip.PrefixFrom(a, a.BitLen()))
			}
		}
		shown = append(shown, f.Prefixes...)
	}
	slices.SortFunc(shown, comparePrefixes)
	shown = slices.Compact(shown)
	r.metadata = shown

	at, lacks, extra := 0, 0, 0
	more := func(p netip.Prefix) {
		if !f.unread(p) && !r.busyCIDR(p) && !r.justReleased(p) {
			extra++
		}
	}
	for i := range e.CIDRs {
		c := &e.CIDRs[i]
		for ; at < len(shown) && comparePrefixes(shown[at], c.Prefix) < 0; at++ {
			more(shown[at])
		}
		if at < len(shown) && shown[at] == c.Prefix {
			at++
			continue
		}
		if r.ours(c.Prefix) && !c.Held && !c.Quarantined() && !f.unread(c.Prefix) && !r.busyCIDR(c.Prefix) {
			lacks++
		}
	}
	for ; at < len(shown); at++ {
		more(shown[at])
	}
	if lacks+extra > 0 {
		r.suspect(e.ID, fmt.Sprintf("the instance metadata lacks %d addresses or prefixes that the book has, and has %d that the book lacks", lacks, extra))
	}
}

// unread reports whether the list that would show p could not be read.
func (f *Interface) unread(p netip.Prefix) bool {
	switch {
	case p.Addr().Is6():
		return f.Unread&PartIPv6Prefixes != 0
	case p.IsSingleIP():
		return f.Unread&PartIPv4s != 0
	}
	return f.Unread&PartPrefixes != 0
}

// justReleased reports whether a CIDR was released so recently that the metadata may still show it.
func (r *reconciler) justReleased(p netip.Prefix) bool {
	return slices.ContainsFunc(r.in.Released, func(rel Release) bool {
		return rel.CIDR == p && r.in.Metadata.At.Sub(rel.At) < ReleaseSettle
	})
}
