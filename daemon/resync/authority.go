package resync

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/ipam"
)

// This file compares the book with EC2's view.

func (r *reconciler) compareWithEC2() {
	book := r.in.Book.ENIs
	r.inBook = make(map[ipam.ENIID]bool, len(book))
	for i := range book {
		r.inBook[book[i].ID] = true
	}
	for i := range book {
		if e := &book[i]; !r.busy(e) {
			r.compareENI(e)
		}
	}
	for _, e := range r.short { // after all removals: an address may have moved
		r.addMissing(e, r.described[e.ID])
	}
	r.sortOthers()
}

// compareENI compares an ENI of the book and its CIDRs with EC2's view.
func (r *reconciler) compareENI(e *ipam.ENIState) {
	d := r.described[e.ID]
	switch {
	case d == nil:
		r.vanished(e, "EC2 does not list it as attached")
		return
	case d.AttachmentStatus == AttachmentDetaching && !e.Primary:
		r.vanished(e, "EC2 is detaching it")
		return
	case r.owner(d) != Managed:
		r.leave(e, "its tags say that it is not the CNI's to manage")
		return
	case !e.Primary && (d.Card != e.Card || d.Device != e.Device):
		if r.leave(e, fmt.Sprintf("it moved from card %d device %d to card %d device %d", e.Card, e.Device, d.Card, d.Device)) {
			r.out.Gone = append(r.out.Gone, e.ENI)
		}
		return
	}
	if e.Quarantined() {
		r.flags = append(r.flags, ipam.UnquarantineENI{ID: e.ID})
		r.note(Note{Kind: ENIBack, ENI: e.ID, Text: "EC2 shows it again"})
	}
	r.exclude(e)
	r.compareCIDRs(e, d)
}

func (r *reconciler) owner(d *ENI) Ownership {
	p := &r.in.Policy
	return Owner(OwnershipInput{
		Primary: d.ID == p.PrimaryENI, Card: d.Card, Type: InterfaceType(d.InterfaceType), Tags: d.Tags,
		InstanceID: p.InstanceID, ManageUntagged: p.ManageUntagged, MultiNIC: p.MultiNIC,
	})
}

// vanished quarantines an ENI that EC2 does not show as attached, and removes it from the book
// when that is confirmed and no pod uses it.
func (r *reconciler) vanished(e *ipam.ENIState, why string) {
	pods := assignedOn(e)
	switch {
	case !e.Quarantined() && r.fresh(e, r.in.EC2.At):
		r.out.NeedEC2 = true
		return
	case !e.Quarantined():
		r.flags = append(r.flags, ipam.QuarantineENI{ID: e.ID})
		r.note(Note{Kind: ENIQuarantined, ENI: e.ID, Count: pods, Text: why + ": not used until that is certain"})
	case pods == 0 && r.confirmed(e.QuarantinedAt, r.shown[e.ID] != nil) && !r.liveOn(e):
		r.removals = append(r.removals, ipam.DetachENI{ID: e.ID})
		r.inBook[e.ID] = false
		r.out.Gone = append(r.out.Gone, e.ENI)
		r.note(Note{Kind: ENIRemoved, ENI: e.ID, Text: why})
		return
	}
	r.cutOff(e.ID, netip.Prefix{}, pods, why)
}

// leave removes an ENI from the book that is attached but no longer belongs there, once no pod
// uses it.
func (r *reconciler) leave(e *ipam.ENIState, why string) (left bool) {
	if assignedOn(e) == 0 && !r.liveOn(e) {
		r.removals = append(r.removals, ipam.DetachENI{ID: e.ID})
		r.inBook[e.ID] = false
		r.note(Note{Kind: ENIRemoved, ENI: e.ID, Text: why})
		return true
	}
	if !e.Quarantined() {
		r.flags = append(r.flags, ipam.QuarantineENI{ID: e.ID})
		r.note(Note{Kind: ENIQuarantined, ENI: e.ID, Count: assignedOn(e), Text: why + ": it serves no new pods"})
	}
	return false
}

// confirmed reports whether EC2's view began long enough after the start of a quarantine to
// confirm it. disputed means that the metadata still shows what EC2 does not.
func (r *reconciler) confirmed(since time.Time, disputed bool) bool {
	wait := ConfirmAfter
	if disputed {
		wait = DisputeAfter
	}
	return r.in.EC2.At.Sub(since) >= wait
}

func (r *reconciler) cutOff(id ipam.ENIID, p netip.Prefix, pods int, why string) {
	if pods > 0 {
		r.out.CutOff += pods
		r.note(Note{Kind: PodsCutOff, ENI: id, CIDR: p, Count: pods, Text: why + ": its pods keep their addresses, which may not work"})
	}
}

func assignedOn(e *ipam.ENIState) int {
	n := 0
	for i := range e.CIDRs {
		n += e.CIDRs[i].Assigned
	}
	return n
}

func (r *reconciler) liveOn(e *ipam.ENIState) bool {
	if r.in.Kernel.State != Known {
		return true
	}
	return slices.ContainsFunc(e.CIDRs, func(c ipam.CIDRState) bool { return r.live(c.Prefix) })
}

// exclude applies the tags of an ENI's subnet.
func (r *reconciler) exclude(e *ipam.ENIState) {
	i := slices.IndexFunc(r.in.Subnets, func(s Subnet) bool { return s.ID == e.SubnetID })
	if i < 0 {
		return // unknown: leave it as it is
	}
	excluded := r.in.Policy.Subnets.Excludes(e.Primary, r.in.Subnets[i])
	if excluded == e.Excluded {
		return
	}
	r.flags = append(r.flags, ipam.SetExcluded{ID: e.ID, Excluded: excluded})
	n := Note{Kind: ENIIncluded, ENI: e.ID, Text: "the tags of " + e.SubnetID + " allow it to serve pods again"}
	if excluded {
		n.Kind, n.Text = ENIExcluded, "the tags of "+e.SubnetID+" exclude it: it serves no new pods"
	}
	r.note(n)
}

// usable collects the CIDRs of a described ENI that pods could use, in order.
func (r *reconciler) usable(out []netip.Prefix, d *ENI) []netip.Prefix {
	out = out[:0]
	if r.in.Policy.IPv6 {
		out = append(out, d.IPv6Prefixes...)
	} else {
		out = appendCIDRs(out, d.SecondaryIPs, d.Prefixes)
	}
	slices.SortFunc(out, comparePrefixes)
	return slices.Compact(out)
}

func comparePrefixes(p, q netip.Prefix) int {
	if n := p.Addr().Compare(q.Addr()); n != 0 {
		return n
	}
	return cmp.Compare(p.Bits(), q.Bits())
}

// compareCIDRs compares the CIDRs of an ENI that is both in the book and in EC2's view.
func (r *reconciler) compareCIDRs(e *ipam.ENIState, d *ENI) {
	r.view = r.usable(r.view, d)
	var back, lost, gone []netip.Prefix
	pods, at, known := 0, 0, 0
	for i := range e.CIDRs {
		c := &e.CIDRs[i]
		if !r.ours(c.Prefix) || c.Held {
			continue
		}
		for at < len(r.view) && comparePrefixes(r.view[at], c.Prefix) < 0 {
			at++
		}
		has := at < len(r.view) && r.view[at] == c.Prefix
		if has {
			known++
		}
		if has && !c.Quarantined() || r.busyCIDR(c.Prefix) {
			continue
		}
		switch {
		case has:
			back = append(back, c.Prefix)
			continue
		case !c.Quarantined():
			lost = append(lost, c.Prefix)
			pods += c.Assigned
		case c.Assigned == 0 && r.confirmed(c.QuarantinedAt, r.metadataDisputes(d, c.Prefix)) && !r.live(c.Prefix):
			gone = append(gone, c.Prefix)
		}
		r.cutOff(e.ID, c.Prefix, c.Assigned, "EC2 does not show this address on the ENI")
	}
	if known < len(r.view) {
		r.short = append(r.short, e)
	}
	if len(back) > 0 {
		r.flags = append(r.flags, ipam.UnquarantineCIDRs{ID: e.ID, CIDRs: back})
		r.note(Note{Kind: AddressesBack, ENI: e.ID, CIDR: back[0], Count: len(back), Text: "EC2 shows them again"})
	}
	if len(lost) > 0 {
		r.flags = append(r.flags, ipam.QuarantineCIDRs{ID: e.ID, CIDRs: lost})
		r.note(Note{Kind: AddressesQuarantined, ENI: e.ID, CIDR: lost[0], Count: len(lost),
			Text: fmt.Sprintf("EC2 does not show them on the ENI: not used until that is certain; %d pods have them", pods)})
	}
	if len(gone) > 0 {
		r.removals = append(r.removals, ipam.RemoveCIDRs{ID: e.ID, CIDRs: gone})
		r.note(Note{Kind: AddressesRemoved, ENI: e.ID, CIDR: gone[0], Count: len(gone), Text: "EC2 does not show them on the ENI"})
	}
}

// metadataDisputes reports whether the metadata shows a CIDR on an ENI that EC2 does not show
// there. The primary address does not count: both show it, and the metadata lists it, too.
func (r *reconciler) metadataDisputes(d *ENI, p netip.Prefix) bool {
	f := r.shown[d.ID]
	if p == netip.PrefixFrom(d.PrimaryIP, d.PrimaryIP.BitLen()) {
		return false
	}
	if f == nil {
		return false
	}
	if p.IsSingleIP() {
		return slices.Contains(f.IPv4s, p.Addr())
	}
	return slices.Contains(f.Prefixes, p) || slices.Contains(f.IPv6Prefixes, p)
}

// addMissing adds the CIDRs that EC2 shows on an ENI of the book and the book lacks.
func (r *reconciler) addMissing(e *ipam.ENIState, d *ENI) {
	r.view = r.usable(r.view, d)
	var fresh []netip.Prefix
	at := 0
	for _, p := range r.view {
		for at < len(e.CIDRs) && comparePrefixes(e.CIDRs[at].Prefix, p) < 0 {
			at++
		}
		if at < len(e.CIDRs) && e.CIDRs[at].Prefix == p {
			continue
		}
		if r.mayAdd(e.ID, e.PrimaryIP, p) {
			fresh = append(fresh, p)
		}
	}
	if len(fresh) > 0 {
		r.additions = append(r.additions, ipam.AddCIDRs{ID: e.ID, CIDRs: fresh})
		r.note(Note{Kind: AddressesAdded, ENI: e.ID, CIDR: fresh[0], Count: len(fresh), Text: "EC2 shows them on the ENI"})
		r.restoreOrphansOf(e.ID, fresh)
	}
}

// mayAdd reports whether the book can and should accept a CIDR, and marks it as taken.
func (r *reconciler) mayAdd(id ipam.ENIID, primary netip.Addr, p netip.Prefix) bool {
	if r.busyCIDR(p) || p == netip.PrefixFrom(primary, primary.BitLen()) {
		return false
	}
	for _, rel := range r.in.Released {
		if rel.CIDR == p && !r.releaseSettled(rel) {
			r.note(Note{Kind: AddressesJustReleased, ENI: id, CIDR: p, Count: 1, Text: "released a moment ago: EC2's list may be older"})
			return false
		}
	}
	if !ipam.ValidCIDR(p) || !r.ours(p) || p.Contains(primary) {
		r.note(Note{Kind: AddressConflict, ENI: id, CIDR: p, Count: 1, Text: "EC2 shows a range that pods cannot use"})
		return false
	}
	if r.cidrs == nil {
		r.cidrs = indexAfter(&r.in.Book, r.removals)
	}
	if other, taken := r.cidrs.overlap(p); taken {
		r.note(Note{Kind: AddressConflict, ENI: id, CIDR: p, Count: 1, Text: "the daemon already has it, or part of it, on " + string(other)})
		return false
	}
	r.cidrs[p] = id
	return true
}

// sortOthers finds the ENIs to set up, and those that occupy slots outside the book.
func (r *reconciler) sortOthers() {
	var here []ENI
	for i := range r.in.EC2.ENIs {
		d := &r.in.EC2.ENIs[i]
		if r.described[d.ID] != d {
			continue
		}
		owner := r.owner(d)
		here = append(here, *d)
		if r.inBook[d.ID] || owner == Ignored || r.busyENIs[d.ID] || r.busySlot(d.Card, d.Device) {
			continue
		}
		switch {
		case owner == Unmanaged:
			r.other(d.ID, d.Card, d.Device, NotManaged)
		case r.start && d.AttachmentStatus == AttachmentDetaching && d.ID != r.in.Policy.PrimaryENI:
			r.out.Ending = append(r.out.Ending, r.entry(d))
		case !r.start && (d.AttachmentStatus == "attaching" || d.AttachmentStatus == AttachmentDetaching):
			r.other(d.ID, d.Card, d.Device, d.AttachmentStatus+", and not by this process")
		default:
			r.out.SetUp = append(r.out.SetUp, r.attached(d))
			r.note(Note{Kind: ENIFound, ENI: d.ID, Text: "attached and managed, but unknown to the daemon: setting it up"})
		}
	}
	for i := range r.in.Metadata.Interfaces {
		f := &r.in.Metadata.Interfaces[i]
		if r.shown[f.ENI] != f || r.described[f.ENI] != nil || r.inBook[f.ENI] || r.busyENIs[f.ENI] || r.busySlot(f.Card, f.Device) {
			continue
		}
		if f.Card > 0 && !r.in.Policy.MultiNIC {
			continue
		}
		r.other(f.ENI, f.Card, f.Device, "in the instance metadata, but EC2 does not list it as attached")
	}
	slices.SortFunc(r.out.Others, func(a, b Other) int {
		return cmp.Or(cmp.Compare(a.Card, b.Card), cmp.Compare(a.Device, b.Device), cmp.Compare(a.ID, b.ID))
	})
	r.out.EFAOnlyCards = EFAOnlyCards(here, r.owner)
}

func (r *reconciler) other(id ipam.ENIID, card, device int, why string) {
	r.out.Others = append(r.out.Others, Other{ID: id, Card: card, Device: device, Why: why})
}

// entry is an ENI as the book would hold it.
func (r *reconciler) entry(d *ENI) Attached {
	in := AttachedInput{ENI: *d, Primary: d.ID == r.in.Policy.PrimaryENI, IPv6: r.in.Policy.IPv6, Now: r.in.Now}
	if i := slices.IndexFunc(r.in.Subnets, func(s Subnet) bool { return s.ID == d.SubnetID }); i >= 0 {
		in.Subnet = r.in.Subnets[i]
	}
	in.Excluded = r.in.Policy.Subnets.Excludes(in.Primary, in.Subnet)
	if f := r.shown[d.ID]; f != nil {
		in.Shown = *f
	}
	return AttachedOf(in)
}

// attached is entry, with only the CIDRs that the book can accept.
func (r *reconciler) attached(d *ENI) Attached {
	a := r.entry(d)
	a.CIDRs = a.CIDRs[:0]
	r.view = r.usable(r.view, d)
	for _, p := range r.view {
		if r.mayAdd(d.ID, a.ENI.PrimaryIP, p) {
			a.CIDRs = append(a.CIDRs, p)
		}
	}
	r.restoreOrphansOf(d.ID, a.CIDRs)
	return a
}
