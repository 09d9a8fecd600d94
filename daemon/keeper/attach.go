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
	op.subnet = k.subnetCIDR(subnet)
	op.create = CreateENI{
		SubnetID: subnet, SecurityGroups: k.groupsOfNew(), IPs: a.IPs, Prefixes: a.Prefixes, ConnTrack: k.tracking,
		Token: k.settings.TokenPrefix + "-" + strconv.FormatUint(uint64(op.ID), 10),
	}
	if op.ipv6 {
		op.create.IPv6, op.create.Prefixes = true, 0 // its /80 is assigned later: EC2 does not assign both at once
	}
	taken := 1
	if !k.settings.IPv6 {
		taken += a.IPs + 16*a.Prefixes
	}
	k.subnets.take(subnet, taken)
	k.begin(*op)
}

// subnetCIDR is the block of a subnet; zero if unknown. Where EC2 does not describe subnets,
// an existing ENI knows its subnet's block from the metadata.
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

// ENICreated reports that EC2 has created an ENI, which is attached next.
type ENICreated struct {
	ID  OpID
	ENI ipam.ENIID
}

func (m ENICreated) handle(k *Keeper, _ time.Time) {
	if op, ok := k.ops[m.ID]; ok {
		op.Created = m.ENI
	}
}

// AttachAccepted reports that EC2 has accepted an attachment; its link is awaited now.
type AttachAccepted struct {
	ID  OpID
	ENI ipam.ENIID
}

func (m AttachAccepted) handle(k *Keeper, now time.Time) {
	if op, ok := k.ops[m.ID]; ok {
		op.AwaitsLink, op.Accepted = m.ENI, now
	}
}

// AttachDone reports a new ENI that is attached and has its routes in the kernel, or why there
// is none.
type AttachDone struct {
	ID         OpID
	ENI        ipam.ENI // zero ID if none was created
	Attachment string
	CIDRs      []netip.Prefix
	Attached   bool // also on failure: the ENI occupies its slot until it is gone
	Refused    int  // how many CIDRs EC2 refused as too many for an ENI, 0 for none; it got fewer
	Err        error
}

func (m AttachDone) handle(k *Keeper, now time.Time) {
	op := k.finish(m.ID, now, m.Err)
	k.slotsRefused(m.Refused, now)
	if m.Attached {
		k.unending.note(m.ENI.ID, m.Attachment)
	}
	if m.Err != nil {
		if m.Attached { // being detached, or set up after all
			k.attachments[m.ENI.ID] = m.Attachment
			k.recon.adopting[m.ENI.ID] = Slot{m.ENI.Card, m.ENI.Device}
			k.attachSeen(op, now)
		}
		k.growthFailed(op, m.Err, now)
		return
	}
	k.endBackoff("attach", "", &k.backoff.attach, op, now)
	k.subnetSucceeded(op, now)
	if m.Refused == 0 {
		k.gaveFewer(op, m.CIDRs)
	}
	m.ENI.AttachedAt = now
	k.recon.given(m.CIDRs)
	k.attachments[m.ENI.ID] = m.Attachment
	crashpoint.Here(crashpoint.BeforeBookAttachENI)
	k.take(resync.Attached{ENI: m.ENI, CIDRs: m.CIDRs}, now)
	crashpoint.Here(crashpoint.AfterBookAttachENI)
	k.attachSeen(op, now)
	k.record(now, ENIAttached{ENI: m.ENI, CIDRs: m.CIDRs})
}

// growthFailed sets the clock or lowers the limit that matches the failure of an attach.
func (k *Keeper) growthFailed(op *Operation, err error, now time.Time) {
	if IsSubnetExhausted(err) || IsFragmented(err) {
		k.subnetShort(op, err, now)
		return
	}
	if !k.attachRefused(op, err, now) {
		k.startBackoff("attach", "", &k.backoff.attach, op, now, CauseOf(err))
	}
}

// subnetShort sets the clock of a subnet that had no addresses, or no /28s, left.
func (k *Keeper) subnetShort(op *Operation, err error, now time.Time) {
	clocks, scope := k.backoff.subnet, "subnet"
	if IsFragmented(err) && op.Prefixes > 0 {
		clocks, scope = k.backoff.subnetPrefixes, "subnet-prefix"
	}
	k.startBackoff(scope, op.SubnetID, of(clocks, op.SubnetID), op, now, CauseOf(err))
	// Other subnets may have become usable: read their tags and counts again.
	k.subnets.expire()
	k.refreshSubnets()
	k.record(now, SubnetShort{Subnet: op.SubnetID, ENI: op.ENI, Err: err})
}

// Adopted reports that an [AdoptTask] has made its ENI ready for pods.
type Adopted struct{ Attached resync.Attached }

func (m Adopted) handle(k *Keeper, now time.Time) {
	a := m.Attached
	delete(k.recon.adopting, a.ENI.ID)
	a.ENI.AttachedAt = now
	k.take(a, now)
	k.record(now, ENIAttached{ENI: a.ENI, CIDRs: a.CIDRs})
}

// Gone reports that an ENI whose slot is still reserved is no longer attached.
type Gone struct{ ENI ipam.ENI }

func (m Gone) handle(k *Keeper, now time.Time) {
	delete(k.recon.adopting, m.ENI.ID)
	delete(k.attachments, m.ENI.ID)
	k.detached[m.ENI.Card] = now
	delete(k.unending.enis, m.ENI.ID)
}
