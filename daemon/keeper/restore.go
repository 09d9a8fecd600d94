package keeper

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Slot is where an ENI is attached.
type Slot struct{ Card, Device int }

// PrimaryMissingError reports that EC2 does not list the instance's primary ENI.
type PrimaryMissingError struct {
	Instance string
	Primary  ipam.ENIID
	Listed   int
}

func (e *PrimaryMissingError) Error() string {
	return fmt.Sprintf("EC2 lists %d attached to %s, but not the primary one, %s", e.Listed, e.Instance, e.Primary)
}

// Found judges the attached ENIs when the daemon starts: a start is a reconcile of an empty
// book. The routes of its SetUp must be in the kernel before [Keeper.Restore].
func (k *Keeper) Found(now time.Time, enis []resync.ENI, interfaces []resync.Interface, subnets []resync.Subnet) (resync.ReconcileResult, error) {
	res := resync.Reconcile(resync.ReconcileInput{
		Now: now, Book: k.book.Snapshot(), Policy: k.reconcilePolicy(), Subnets: subnets,
		EC2:      resync.EC2View{State: resync.Known, At: now, ENIs: enis},
		Metadata: resync.MetadataView{State: resync.Known, At: now, Interfaces: interfaces},
	})
	if !res.Settled {
		return res, &PrimaryMissingError{k.settings.InstanceID, k.settings.PrimaryENI, len(enis)}
	}
	return res, nil
}

// Start is everything known when the daemon starts.
type Start struct {
	Attached   []resync.ENI // to the instance, as EC2 lists them
	Found      resync.ReconcileResult
	Usable     []resync.Attached // the part of Found.SetUp whose routes are in the kernel
	Late       []resync.Attached // the part whose routes could not be made yet
	Orphans    []resync.ENI      // created by an earlier daemon on this node, and not attached
	Subnets    []resync.Subnet   // nil if unknown
	Interfaces []resync.Interface
	Entries    []checkpoint.Entry // of all files
	Damaged    bool               // part of the file could not be read
	Restart    bool               // a daemon ran here before: EC2's lists may still show what it released
	Links      []string
	Routes     []resync.PodRoute
}

// Restored summarizes what a start restored.
type Restored struct {
	Allocations int
	Recovered   int                // allocations rebuilt from the kernel
	Stale       []checkpoint.Entry // allocations whose pod is gone: their rules are to be removed
	Unplaced    []ipam.Assignment  // kept although their address is on no known ENI
}

// Restore fills the book of a new Keeper: ENIs from EC2, allocations from the
// checkpoint and, where that is damaged or missing, from the kernel's pod routes.
func (k *Keeper) Restore(now time.Time, s Start) (Restored, error) {
	for _, ev := range resync.Adopt(k.book.Snapshot(), s.Usable) {
		if _, err := k.book.Apply(now, ev); err != nil {
			return Restored{}, fmt.Errorf("take attached ENIs into the address book: %w", err)
		}
	}
	result := resync.Restore(resync.RestoreInput{
		Entries: s.Entries, Links: s.Links, Routes: s.Routes, Now: now,
		HashOf: func(ns, name string) string { return netnames.Hash(ns, name, 0) },
	})
	for _, e := range result.Events {
		if _, err := k.book.Apply(now, e); err != nil {
			return Restored{}, fmt.Errorf("restore allocation of %s: %w", e.Address, err)
		}
	}
	if differ := k.ledger.load(s.Entries, k.Assignments()); differ || s.Damaged {
		k.ledger.touch()
		k.changed()
	}
	if len(s.Subnets) > 0 {
		k.subnets.fill(s.Subnets, k.settings.Subnets, now, k.jitter)
	}
	for _, e := range s.Attached {
		k.attachments[e.ID] = e.AttachmentID
	}
	k.setOthers(s.Found.Others, now)
	k.recon.efaOnly = s.Found.EFAOnlyCards
	if s.Restart {
		k.quarantineUnconfirmed(s, now)
		// The first read asks EC2 again.
		k.recon.lastEC2, k.recon.askedEC2, k.recon.needEC2 = time.Time{}, time.Time{}, true
	}
	k.beginLeftovers(s, now)
	return Restored{
		Allocations: len(result.Events), Recovered: result.Recovered, Stale: result.Stale, Unplaced: k.book.Snapshot().Unplaced,
	}, nil
}

// quarantineUnconfirmed keeps free addresses out of use that EC2 lists and the metadata does
// not. Both lists lag, and the previous daemon may have released the addresses just before it
// died. The next read of EC2 decides.
func (k *Keeper) quarantineUnconfirmed(s Start, now time.Time) {
	for _, f := range s.Interfaces {
		e, ok := k.eni(f.ENI)
		if !ok || f.Unread != 0 {
			continue
		}
		shown := f.CIDRsOf(k.settings.IPv6)
		var doubtful []netip.Prefix
		for _, c := range e.CIDRs {
			if c.Assigned == 0 && c.Prefix.Addr().Is6() == k.settings.IPv6 && !slices.Contains(shown, c.Prefix) {
				doubtful = append(doubtful, c.Prefix)
			}
		}
		if len(doubtful) > 0 {
			k.apply(now, ipam.QuarantineCIDRs{ID: f.ENI, CIDRs: doubtful})
		}
	}
}

// beginLeftovers starts the tasks that remain after a start.
func (k *Keeper) beginLeftovers(s Start, now time.Time) {
	for _, a := range s.Late {
		k.adopt(a, nil)
	}
	for _, a := range s.Found.Ending {
		k.recon.adopting[a.ENI.ID] = Slot{a.ENI.Card, a.ENI.Device}
		k.begin(EndingTask{ENI: a.ENI, Keep: !k.settings.Provisioning || k.podsIn(a.CIDRs)})
	}
	var orphans []ipam.ENIID
	for _, e := range resync.WithoutPods(s.Orphans, k.addresses()) {
		orphans = append(orphans, e.ID)
	}
	if len(orphans) > 0 {
		k.record(now, LeaksFound{ENIs: len(orphans)})
		k.begin(DeleteTask{orphans})
	}
	if ours := slices.DeleteFunc(slices.Clone(s.Attached), func(e resync.ENI) bool {
		return e.Trunk() || !slices.ContainsFunc(s.Found.SetUp, func(a resync.Attached) bool { return a.ENI.ID == e.ID })
	}); k.settings.Provisioning && len(ours) > 0 {
		k.begin(TagTask{ours})
		k.noteUnending(ours, now)
	}
}

// adopt reserves the slot of an attached ENI and sets it up.
func (k *Keeper) adopt(a resync.Attached, before []ipam.ENI) {
	k.recon.adopting[a.ENI.ID] = Slot{a.ENI.Card, a.ENI.Device}
	if a.AttachmentID != "" {
		k.attachments[a.ENI.ID] = a.AttachmentID
	}
	k.begin(AdoptTask{Attached: a, Before: before})
}

// EndingTask waits for the end of an attachment that an earlier daemon was detaching, and
// deletes the ENI.
type EndingTask struct {
	ENI  ipam.ENI
	Keep bool // do not delete it: pods have its addresses, or the daemon may not change EC2
}

func (t EndingTask) run(ctx context.Context, c Calls) {
	if err := awaitDetached(ctx, c, t.ENI); err != nil {
		note(c, "ENI that was being detached is not gone", t.ENI.ID, err)
		return // its slot stays taken
	}
	c.Post(Gone{t.ENI})
	if !t.Keep {
		DeleteTask{[]ipam.ENIID{t.ENI.ID}}.run(ctx, c)
	}
}

// Assignments lists the allocations.
func (k *Keeper) Assignments() []ipam.Assignment {
	var out []ipam.Assignment
	for a := range k.book.Assignments() {
		out = append(out, a)
	}
	return out
}

// podsIn reports whether pods have addresses of the CIDRs.
func (k *Keeper) podsIn(cidrs []netip.Prefix) bool {
	for a := range k.book.Assignments() {
		if slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return p.Contains(a.Address) }) {
			return true
		}
	}
	return false
}

// addresses lists the addresses that pods have.
func (k *Keeper) addresses() []netip.Addr {
	var out []netip.Addr
	for a := range k.book.Assignments() {
		out = append(out, a.Address)
	}
	return out
}

// Holds reports whether an address is assigned.
func (k *Keeper) Holds(a netip.Addr) bool {
	_, ok := k.book.AtAddress(a)
	return ok
}
