package keeper

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

func (k *Keeper) startAssign(id ipam.ENIID, ips, prefixes int, why warmpool.Reason, now time.Time) {
	e, _ := k.eni(id)
	if k.subnets.unread(e.SubnetID, now) {
		k.refreshSubnets() // the next plan requests what the subnet has
		return
	}
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: id, Card: e.Card, Device: e.Device, SubnetID: e.SubnetID, IPs: ips, Prefixes: prefixes},
		Reason:  why,
	}, now)
	if !k.settings.IPv6 {
		k.subnets.take(op.SubnetID, ips+16*prefixes)
	}
	k.begin(*op)
}

// AssignDone reports addresses or prefixes that EC2 added to an ENI.
type AssignDone struct {
	ID    OpID
	CIDRs []netip.Prefix
	// All: CIDRs is everything the ENI holds, read after EC2 reported that it is full or
	// did not report what it assigned.
	All    bool
	Before []netip.Prefix // everything the ENI held when EC2 refused a larger request; nil if it was not read
	Full   bool           // EC2 reports that the ENI cannot take more
	// Refused is how many CIDRs EC2 refused as too many for the ENI, together with those it
	// holds; 0 if none were refused, or more than its type takes.
	Refused int
	Err     error
}

func (m AssignDone) handle(k *Keeper, now time.Time) {
	op := k.finish(m.ID, now, m.Err)
	eni := op.ENI
	if m.Before != nil {
		k.addCIDRs(eni, k.recon.settled(m.Before), now)
	}
	switch {
	case m.All:
		k.addCIDRs(eni, k.recon.settled(m.CIDRs), now)
	case m.Err == nil:
		k.recon.given(m.CIDRs)
		k.addCIDRs(eni, m.CIDRs, now)
	}
	stated := k.slotsRefused(m.Refused, now)
	if m.Refused == 0 {
		k.slotsSeen(op, now)
	}
	switch {
	case m.Full && stated:
		// The limit now keeps the pool from asking again.
	case m.Full:
		// Whether or not the book knew all of them, an immediate retry cannot succeed.
		k.startBackoff("eni", string(eni), of(k.backoff.eni, eni), op, now, cause.PoolFull)
	case m.Err == nil:
		k.endBackoff("eni", string(eni), k.backoff.eni[eni], op, now)
		delete(k.backoff.eni, eni)
		k.subnetSucceeded(op, now)
		if m.Refused == 0 {
			k.gaveFewer(op, m.CIDRs)
		}
	default:
		k.startBackoff("eni", string(eni), of(k.backoff.eni, eni), op, now, CauseOf(m.Err))
		if IsFragmented(m.Err) || IsSubnetExhausted(m.Err) {
			k.subnetShort(op, m.Err, now)
		}
		k.noteVanished(op, m.Err, now)
	}
}

// addCIDRs adds to the book those of an ENI's CIDRs that it lacks.
func (k *Keeper) addCIDRs(id ipam.ENIID, all []netip.Prefix, now time.Time) {
	e, ok := k.eni(id)
	if !ok {
		return // it was detached meanwhile
	}
	crashpoint.Here(crashpoint.BeforeBookAddCIDRs)
	k.take(resync.Attached{ENI: e.ENI, CIDRs: all}, now)
	crashpoint.Here(crashpoint.AfterBookAddCIDRs)
}

// take adds an ENI's missing CIDRs to the book, as EC2 has just reported them.
func (k *Keeper) take(a resync.Attached, now time.Time) {
	k.conclude(a.CIDRs, now)
	for _, ev := range resync.Adopt(k.book.Snapshot(), []resync.Attached{a}) {
		k.apply(now, ev)
		if added, ok := ev.(ipam.AddCIDRs); ok {
			k.record(now, CIDRsAdded{ENI: a.ENI.ID, CIDRs: added.CIDRs})
		}
	}
	e, _ := k.eni(a.ENI.ID)
	for _, p := range a.CIDRs {
		if !slices.ContainsFunc(e.CIDRs, func(c ipam.CIDRState) bool { return c.Prefix == p }) {
			k.recon.moved[p] = a.ENI.ID
		}
	}
}

// conclude ends the release of CIDRs that EC2 has assigned again: it has taken them back,
// although its answer to the release is still to come.
func (k *Keeper) conclude(given []netip.Prefix, now time.Time) {
	for _, op := range k.inFlight() {
		if op.Kind != warmpool.PendingRelease {
			continue
		}
		if gone := both(op.CIDRs, given); len(gone) > 0 {
			op.CIDRs = without(op.CIDRs, gone)
			k.removeCIDRs(op.ENI, gone, now)
		}
	}
}

func both(a, b []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(a), func(p netip.Prefix) bool { return !slices.Contains(b, p) })
}

func without(a, b []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(a), func(p netip.Prefix) bool { return slices.Contains(b, p) })
}

func (k *Keeper) removeCIDRs(eni ipam.ENIID, cidrs []netip.Prefix, now time.Time) {
	crashpoint.Here(crashpoint.BeforeBookRemoveCIDRs)
	k.apply(now, ipam.RemoveCIDRs{ID: eni, CIDRs: cidrs})
	crashpoint.Here(crashpoint.AfterBookRemoveCIDRs)
	for _, p := range cidrs {
		delete(k.recon.moved, p) // the book still had it on this ENI
	}
	k.record(now, CIDRsRemoved{ENI: eni, CIDRs: cidrs})
}

// noteVanished stops using the addresses of an ENI that EC2 no longer knows because something
// else deleted it. The next read of EC2 removes it from the book.
func (k *Keeper) noteVanished(op *Operation, err error, now time.Time) {
	if !IsNotFound(err) {
		return
	}
	k.record(now, ENIVanished{ENI: op.ENI, Err: err})
	k.apply(now, ipam.QuarantineENI{ID: op.ENI})
	k.recon.needEC2 = true
	k.recon.observeSoon(now)
}
