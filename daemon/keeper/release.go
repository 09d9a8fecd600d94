package keeper

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

func (k *Keeper) startRelease(id ipam.ENIID, cidrs []netip.Prefix, why warmpool.Reason, now time.Time) {
	k.lastScaleDown = now
	if _, err := k.try(now, ipam.HoldCIDRs{ID: id, CIDRs: cidrs}); err != nil {
		return
	}
	e, _ := k.eni(id)
	k.begin(*k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingRelease, ENI: id, Card: e.Card, Device: e.Device}, CIDRs: cidrs, Reason: why,
	}, now))
}

// ReleaseDone reports which CIDRs EC2 took back.
type ReleaseDone struct {
	ID   OpID
	Gone []netip.Prefix
	Err  error
}

func (m ReleaseDone) handle(k *Keeper, now time.Time) {
	op := k.finish(m.ID, now, m.Err)
	eni := op.ENI
	if m.Err == nil {
		k.endBackoff("release", "", &k.backoff.release, op, now)
	} else {
		k.startBackoff("release", "", &k.backoff.release, op, now, CauseOf(m.Err))
	}
	gone, kept := both(op.CIDRs, m.Gone), without(op.CIDRs, m.Gone)
	if len(gone) > 0 {
		k.recon.noteReleased(gone, now)
		e, _ := k.eni(eni)
		k.subnets.give(e.SubnetID, addressesIn(gone))
		k.removeCIDRs(eni, gone, now)
	}
	if len(kept) > 0 {
		k.apply(now, ipam.UnholdCIDRs{ID: eni, CIDRs: kept})
	}
}

func (k *Keeper) startDetach(a warmpool.DetachENI, now time.Time) {
	k.lastScaleDown = now
	eni, ok := k.eni(a.ENI)
	if !ok {
		return
	}
	if _, err := k.try(now, ipam.HoldENI{ID: a.ENI}); err != nil {
		return
	}
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingDetach, ENI: a.ENI, Card: eni.Card, Device: eni.Device}, Reason: a.Reason,
	}, now)
	op.detach = resync.Attached{ENI: eni.ENI, CIDRs: prefixesOf(eni), AttachmentID: k.attachments[a.ENI]}
	k.begin(*op)
}

// DetachDone reports that an ENI has left the instance; its deletion continues.
type DetachDone struct {
	ID  OpID
	Err error
}

func (m DetachDone) handle(k *Keeper, now time.Time) {
	op := k.finish(m.ID, now, m.Err)
	if m.Err != nil {
		k.startBackoff("release", "", &k.backoff.release, op, now, CauseOf(m.Err))
		k.apply(now, ipam.UnholdENI{ID: op.ENI})
		return
	}
	k.endBackoff("release", "", &k.backoff.release, op, now)
	k.forget(op.ENI)
	k.detached[op.Card] = now
	if e, ok := k.eni(op.ENI); ok {
		k.subnets.give(e.SubnetID, 1+addressesIn(prefixesOf(e))) // including the primary address
	}
	crashpoint.Here(crashpoint.BeforeBookDetachENI)
	k.apply(now, ipam.DetachENI{ID: op.ENI})
	crashpoint.Here(crashpoint.AfterBookDetachENI)
	k.record(now, ENIDetached{ID: op.ENI, Card: op.Card, Device: op.Device})
}

func prefixesOf(e ipam.ENIState) (out []netip.Prefix) {
	for _, c := range e.CIDRs {
		out = append(out, c.Prefix)
	}
	return out
}

func (k *Keeper) forget(id ipam.ENIID) {
	delete(k.backoff.eni, id)
	delete(k.attachments, id)
	delete(k.unending.enis, id)
}
