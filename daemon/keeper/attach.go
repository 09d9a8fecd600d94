package keeper

import (
	"net/netip"
	"strconv"
	"time"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

func (k *Keeper) startAttach(a warmpool.AttachENI, now time.Time) {
	subnet := a.SubnetID
	if subnet == "" {
		subnet = k.settings.Subnets.Fallback()
	}
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingAttach, Card: a.Card, Device: a.Device, IPs: a.IPs, Prefixes: a.Prefixes, SubnetID: subnet},
		Reason:  a.Reason,
	}, now)
	taken := 1
	if !k.settings.IPv6 {
		taken += a.IPs + 16*a.Prefixes
	}
	k.subnets.take(subnet, taken)
	k.out.Begin(AttachTask{ID: op.ID, Urgent: urgent(a.Reason), Plan: AttachPlan{
		Card: a.Card, Device: a.Device, SubnetID: subnet, Subnet: k.subnetCIDR(subnet),
		IPs: a.IPs, Prefixes: a.Prefixes, IPv6: k.settings.IPv6, Groups: k.groupsOfNew(), ConnTrack: k.tracking,
		Token: k.settings.TokenPrefix + "-" + strconv.FormatUint(uint64(op.ID), 10),
	}})
}

// subnetCIDR is the block of a subnet; zero: not known. Where EC2 does not describe
// subnets an ENI that is there knows its own, from the metadata.
func (k *Keeper) subnetCIDR(id string) netip.Prefix {
	if cidr := k.subnets.cidr(id, k.settings.IPv6); cidr.IsValid() {
		return cidr
	}
	for _, e := range k.book.Snapshot().ENIs {
		if e.SubnetID == id && e.Subnet.IsValid() {
			return e.Subnet
		}
	}
	return netip.Prefix{}
}

// ENICreated reports that EC2 has made an ENI; it is to be attached now.
type ENICreated struct {
	ID  OpID
	ENI ipam.ENIID
}

func (m ENICreated) handle(k *Keeper, _ time.Time) {
	if op, ok := k.ops[m.ID]; ok {
		op.Created = m.ENI
	}
}

// AttachAccepted reports that EC2 has taken an attachment; the link is awaited now.
type AttachAccepted struct {
	ID  OpID
	ENI ipam.ENIID
}

func (m AttachAccepted) handle(k *Keeper, now time.Time) {
	if op, ok := k.ops[m.ID]; ok {
		op.AwaitsLink, op.Accepted = m.ENI, now
	}
}

// AttachDone reports a new ENI that is attached and whose host routes stand, or why
// there is none.
type AttachDone struct {
	ID     OpID
	Result AttachResult
}

func (m AttachDone) handle(k *Keeper, now time.Time) {
	r := m.Result
	op := k.finish(m.ID, now, r.Err)
	if r.Err != nil {
		if r.Attached { // on its way out, or in after all
			k.attachments[r.ENI.ID] = r.Attachment
			k.recon.adopting[r.ENI.ID] = Slot{r.ENI.Card, r.ENI.Device}
		}
		k.growthFailed(op, r.Err, now)
		return
	}
	k.free("attach", "", &k.backoff.attach, op, now)
	k.gave(op, now)
	k.gaveFewer(op, r.CIDRs)
	r.ENI.AttachedAt = now
	k.recon.given(r.CIDRs)
	k.attachments[r.ENI.ID] = r.Attachment
	crashpoint.Here(crashpoint.BeforeBookAttachENI)
	k.take(resync.Attached{ENI: r.ENI, CIDRs: r.CIDRs}, now)
	crashpoint.Here(crashpoint.AfterBookAttachENI)
	k.record(now, ENIAttached{ENI: r.ENI, CIDRs: r.CIDRs})
}

// growthFailed turns the failure of an attach into the clock that fits it.
func (k *Keeper) growthFailed(op *Operation, err error, now time.Time) {
	if IsSubnetExhausted(err) || IsFragmented(err) {
		k.subnetShort(op, err, now)
		return
	}
	k.hold("attach", "", &k.backoff.attach, op, now, CauseOf(err))
}

// subnetShort sets the clock of a subnet that had no addresses, or no /28s, to give.
func (k *Keeper) subnetShort(op *Operation, err error, now time.Time) {
	clocks, scope := k.backoff.subnet, "subnet"
	if IsFragmented(err) && op.Prefixes > 0 {
		clocks, scope = k.backoff.subnetPrefixes, "subnet-prefix"
	}
	k.hold(scope, op.SubnetID, of(clocks, op.SubnetID), op, now, CauseOf(err))
	// Others may have become usable: their tags and counts are read again.
	k.subnets.expire()
	k.refreshSubnets()
	k.record(now, SubnetShort{Subnet: op.SubnetID, ENI: op.ENI, Err: err})
}

// Adopted reports that an ENI that came late is ready for pods.
type Adopted struct{ Attached resync.Attached }

func (m Adopted) handle(k *Keeper, now time.Time) {
	a := m.Attached
	delete(k.recon.adopting, a.ENI.ID)
	a.ENI.AttachedAt = now
	k.take(a, now)
	k.record(now, ENIAttached{ENI: a.ENI, CIDRs: a.CIDRs})
}

// Gone reports that an ENI that came late is not attached any more.
type Gone struct{ ENI ipam.ENI }

func (m Gone) handle(k *Keeper, _ time.Time) {
	delete(k.recon.adopting, m.ENI.ID)
	delete(k.attachments, m.ENI.ID)
}
