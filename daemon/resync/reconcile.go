package resync

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

// Reconcile compares the book with what EC2, the instance metadata and the kernel show
// (differences from upstream: docs/compatibility.md, 13.1-1 and 13.1-2).
//
// EC2 is the authority: the metadata alone never causes an addition or a removal. What EC2
// does not show is quarantined first. It is removed when a later view of EC2
// ([ConfirmAfter], [DisputeAfter]) does not show it either, no pod is assigned to it and the
// kernel has no pod route into it. What EC2 shows and the book lacks is added, unless it was
// released within [ReleaseSettle]. A view that could not be read has no effect. Whatever
// operations are working on is left alone.
//
// An ENI that is no longer managed (its tags changed) is quarantined while pods use it, and
// then leaves the book without an EC2 call.
//
// An empty book means a start: then, whatever is being attached or detached belongs to an
// earlier process of the same node.
func Reconcile(in ReconcileInput) ReconcileResult {
	r := reconciler{in: &in, start: len(in.Book.ENIs) == 0}
	r.prepare()
	if r.settled() {
		r.compareWithEC2()
	} else {
		r.compareWithMetadata()
	}
	r.restoreOrphans()
	r.forget()
	r.out.Events = slices.Concat(r.removals, r.flags, r.additions)
	return r.out
}

// reconciler collects the results. Additions may need what removals free, so they come last.
type reconciler struct {
	in    *ReconcileInput
	out   ReconcileResult
	start bool // the book is empty

	removals, flags, additions []ipam.Event

	routes   []PodRoute // those that lead to a host link, ordered by address
	shown    map[ipam.ENIID]*Interface
	busyENIs map[ipam.ENIID]bool

	described map[ipam.ENIID]*ENI
	inBook    map[ipam.ENIID]bool // after the removals
	short     []*ipam.ENIState    // EC2 shows CIDRs on these that the book lacks
	cidrs     cidrIndex           // after the removals, plus the additions; built when needed
	recovered map[ipam.Sandbox]bool

	view, metadata []netip.Prefix // scratch
}

func (r *reconciler) prepare() {
	in := r.in
	r.busyENIs = make(map[ipam.ENIID]bool, len(in.Busy.ENIs))
	for _, id := range in.Busy.ENIs {
		r.busyENIs[id] = true
	}
	if in.Metadata.State == Known {
		r.shown = make(map[ipam.ENIID]*Interface, len(in.Metadata.Interfaces))
		for i := range in.Metadata.Interfaces {
			r.shown[in.Metadata.Interfaces[i].ENI] = &in.Metadata.Interfaces[i]
		}
	}
	if in.Kernel.State == Known {
		r.routes = make([]PodRoute, 0, len(in.Kernel.Routes))
		for _, p := range in.Kernel.Routes {
			if p.HostLink != "" {
				r.routes = append(r.routes, p)
			}
		}
		slices.SortFunc(r.routes, func(a, b PodRoute) int {
			if n := a.Address.Compare(b.Address); n != 0 {
				return n
			}
			return cmp.Compare(a.HostLink, b.HostLink)
		})
	}
	r.unknown(in.EC2.State, EC2Unknown, "EC2 did not list the node's ENIs: nothing is removed or added")
	r.unknown(in.Metadata.State, MetadataUnknown, "the instance metadata did not list the interfaces: differences cannot be detected")
	r.unknown(in.Kernel.State, KernelUnknown, "the kernel's pod routes are unknown: nothing is removed")
}

func (r *reconciler) unknown(state Knowledge, kind NoteKind, text string) {
	if state == Failed {
		r.note(Note{Kind: kind, Text: text})
	}
}

func (r *reconciler) note(n Note) { r.out.Notes = append(r.out.Notes, n) }

// settled reports whether EC2's view can be trusted: a list without the primary ENI, which
// lives as long as the instance, cannot be the node's.
func (r *reconciler) settled() bool {
	in := r.in
	if in.EC2.State != Known {
		return false
	}
	r.described = make(map[ipam.ENIID]*ENI, len(in.EC2.ENIs))
	for i := range in.EC2.ENIs {
		if e := &in.EC2.ENIs[i]; r.attachedHere(e) {
			r.described[e.ID] = e
		}
	}
	if r.described[in.Policy.PrimaryENI] == nil {
		r.note(Note{Kind: EC2Unknown, ENI: in.Policy.PrimaryENI, Text: fmt.Sprintf(
			"EC2 lists %d attached ENIs, but not the primary one: ignoring the list", len(r.described))})
		return false
	}
	r.out.Settled = true
	return true
}

// attachedHere reports whether an ENI occupies a slot of the instance.
func (r *reconciler) attachedHere(e *ENI) bool {
	return e.Attached() && (e.InstanceID == "" || e.InstanceID == r.in.Policy.InstanceID)
}

// busy reports whether operations are working on an ENI of the book.
func (r *reconciler) busy(e *ipam.ENIState) bool { return e.Held || r.busyENIs[e.ID] }

// fresh reports whether an ENI was attached so shortly before a view that the view may not
// show it yet.
func (r *reconciler) fresh(e *ipam.ENIState, view time.Time) bool {
	return view.Sub(e.AttachedAt) < attachRest
}

func (r *reconciler) busyCIDR(p netip.Prefix) bool { return slices.Contains(r.in.Busy.CIDRs, p) }

func (r *reconciler) busySlot(card, device int) bool {
	return slices.Contains(r.in.Busy.Slots, Slot{card, device})
}

// ours reports whether p is of the pods' family.
func (r *reconciler) ours(p netip.Prefix) bool { return p.Addr().Is6() == r.in.Policy.IPv6 }

// live reports whether a CIDR has, or may have, a running pod.
func (r *reconciler) live(p netip.Prefix) bool {
	return r.in.Kernel.State != Known || len(r.routesIn(p)) > 0
}

// routesIn lists the pod routes into a CIDR.
func (r *reconciler) routesIn(p netip.Prefix) []PodRoute {
	first, _ := slices.BinarySearchFunc(r.routes, p.Addr(), func(x PodRoute, a netip.Addr) int { return x.Address.Compare(a) })
	end := first
	for end < len(r.routes) && p.Contains(r.routes[end].Address) {
		end++
	}
	return r.routes[first:end]
}

// restoreOrphans restores running pods whose address the book believes to be free: their
// record was lost, and the address would be given to another pod.
func (r *reconciler) restoreOrphans() {
	if len(r.routes) == 0 {
		return
	}
	for i := range r.in.Book.ENIs {
		e := &r.in.Book.ENIs[i]
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			if c.Assigned == c.Size() || c.Held || r.busy(e) || r.busyCIDR(c.Prefix) {
				continue
			}
			for _, p := range r.routesIn(c.Prefix) {
				r.restoreOrphan(e.ID, c.Records, p)
			}
		}
	}
}

// restoreOrphansOf restores the running pods in CIDRs that are about to be added to the book.
// Waiting for the next look would let their addresses look free for a minute. The book keeps a
// pod unplaced while its ENI is still to be set up.
func (r *reconciler) restoreOrphansOf(id ipam.ENIID, cidrs []netip.Prefix) {
	for _, c := range cidrs {
		for _, p := range r.routesIn(c) {
			r.restoreOrphan(id, nil, p)
		}
	}
}

// restoreOrphan restores the pod of one route, unless the records of its CIDR have it.
func (r *reconciler) restoreOrphan(id ipam.ENIID, records []ipam.AddressState, p PodRoute) {
	at, known := slices.BinarySearchFunc(records, p.Address, func(s ipam.AddressState, a netip.Addr) int { return s.Address.Compare(a) })
	if known {
		if s := &records[at]; s.Assigned() || r.in.Now.Sub(s.UnassignedAt) < cmp.Or(r.in.Policy.OrphanAge, OrphanAge) {
			return // its DEL may have been answered a moment ago
		}
	}
	if r.recovered == nil {
		r.recovered = recoveredKeys(&r.in.Book)
	}
	key := Recovered(p.HostLink)
	if r.recovered[key] || r.recovered[addressKey(p.Address)] {
		return
	}
	r.recovered[key], r.recovered[addressKey(p.Address)] = true, true
	r.additions = append(r.additions, ipam.Restore{Sandbox: key, Address: p.Address, AssignedAt: r.in.Now})
	r.note(Note{Kind: PodRecovered, ENI: id, CIDR: netip.PrefixFrom(p.Address, p.Address.BitLen()), Count: 1,
		Text: "host link " + p.HostLink + " has a route to an address without allocation: kept until the link is gone"})
}

// addressKey represents an address in the set of recovered keys.
func addressKey(a netip.Addr) ipam.Sandbox { return ipam.Sandbox{IfName: a.String()} }

// recoveredKeys lists the keys of allocations that were rebuilt from the kernel.
func recoveredKeys(book *ipam.Snapshot) map[ipam.Sandbox]bool {
	keys := map[ipam.Sandbox]bool{}
	add := func(s ipam.Sandbox) {
		if s.Network == netnames.RecoveredNetwork {
			keys[s] = true
		}
	}
	for i := range book.ENIs {
		for j := range book.ENIs[i].CIDRs {
			for _, a := range book.ENIs[i].CIDRs[j].Records {
				add(a.Sandbox)
			}
		}
	}
	for _, a := range book.Unplaced {
		add(a.Sandbox)
		keys[addressKey(a.Address)] = true
	}
	return keys
}

// forget lists the releases that all of EC2's lists have had time to reflect.
func (r *reconciler) forget() {
	for _, rel := range r.in.Released {
		if r.in.Now.Sub(rel.At) >= ReleaseSettle && (!r.out.Settled || r.releaseSettled(rel)) {
			r.out.Forget = append(r.out.Forget, rel.CIDR)
		}
	}
}

// releaseSettled reports whether EC2's view began late enough to reflect a release.
func (r *reconciler) releaseSettled(rel Release) bool {
	return r.in.EC2.At.Sub(rel.At) >= ReleaseSettle
}
