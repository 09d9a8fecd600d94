package keeper

import (
	"errors"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// lowered are the limits that everything goes by: those of the instance type, or lower ones that
// EC2 stated since the start. A new start believes the type again.
func (k *Keeper) lowered() warmpool.Limits { return k.stated.Lower(k.limits) }

// detachRest is how long after a detach a refusal of another ENI proves nothing: EC2 may still
// count the detached one.
const detachRest = time.Minute

// attachRefused takes note of EC2's refusal to attach another ENI. It reports whether that
// lowered the limit, or confirmed a lower one. An ENI that EC2 refused to create says nothing
// about the instance: NetworkInterfaceLimitExceeded is the account's quota.
func (k *Keeper) attachRefused(op *Operation, err error, now time.Time) bool {
	if CauseOf(err) != cause.ENIAttachLimit || errors.Is(err, ErrCreate) {
		return false
	}
	k.recheck(now) // something else may have attached ENIs
	if last, ok := k.detached[op.Card]; ok && now.Sub(last) < detachRest {
		return false
	}
	stated, lower := k.stated.ENIRefused(k.limits, op.Card, k.attachedTo(op.Card, true), now)
	k.setStated(stated, err, now)
	return lower
}

// slotsRefused takes note of EC2's refusal to put that many secondary IPs or prefixes on an ENI;
// 0 for none. It reports whether that lowered the limit, or confirmed a lower one. If another
// ENI holds as many, or not even one was accepted, it says something about that ENI, not about
// the instance: every type takes one.
func (k *Keeper) slotsRefused(refused int, now time.Time) bool {
	if refused == 0 {
		return false
	}
	k.recheck(now) // something else may have put addresses on the ENI
	if refused == 1 || refused <= k.mostHeld() {
		return false
	}
	stated, lower := k.stated.SlotsRefused(k.limits, refused-1, now)
	k.setStated(stated, nil, now)
	return lower
}

// attachSeen takes note of an ENI that was attached.
func (k *Keeper) attachSeen(op *Operation, now time.Time) {
	k.setStated(k.stated.ENIsSeen(op.Card, k.attachedTo(op.Card, false), op.Started), nil, now)
}

// slotsSeen takes note of addresses that an ENI got.
func (k *Keeper) slotsSeen(op *Operation, now time.Time) {
	if e, ok := k.eni(op.ENI); ok {
		k.setStated(k.stated.SlotsSeen(k.heldBy(e), op.Started), nil, now)
	}
}

// reviewLimits raises what EC2 stated to what there is: a refusal counted more ENIs or
// addresses than were known here.
func (k *Keeper) reviewLimits(now time.Time) {
	if !k.stated.Any() {
		return
	}
	stated := k.stated.SlotsSeen(k.mostHeld(), time.Time{})
	for card := range k.limits.ENIsByCard {
		stated = stated.ENIsSeen(card, k.attachedTo(card, false), time.Time{})
	}
	k.setStated(stated, nil, now)
}

// setStated sets what EC2 stated, and records each difference.
func (k *Keeper) setStated(stated warmpool.StatedLimits, err error, now time.Time) {
	before := k.stated
	k.stated = stated
	differs := func(card int, was, is warmpool.Stated) {
		if was.There() != is.There() || was.Most != is.Most {
			k.record(now, LimitChanged{Card: card, Was: was, Is: is, Err: err})
		}
	}
	for card := range k.limits.ENIsByCard {
		differs(card, before.Card(card), stated.Card(card))
	}
	differs(PerENI, before.Slots, stated.Slots)
}

// attachedTo counts the ENIs that occupy slots of a card; with coming, also those that are being
// attached.
func (k *Keeper) attachedTo(card int, coming bool) int {
	others, _ := k.recon.slots(len(k.limits.ENIsByCard))
	n := 0
	if card < len(others) {
		n = others[card]
	}
	for _, e := range k.book.Snapshot().ENIs {
		if e.Card == card {
			n++
		}
	}
	for _, op := range k.ops {
		if op.Kind == warmpool.PendingAttach && op.Card == card && coming {
			n++
		}
	}
	return n
}

// mostHeld is the largest number of secondary IPs and prefixes that any ENI holds.
func (k *Keeper) mostHeld() (most int) {
	for _, e := range k.book.Snapshot().ENIs {
		most = max(most, k.heldBy(e))
	}
	return most
}

func (k *Keeper) heldBy(e ipam.ENIState) int {
	n := k.misplaced()[e.ID]
	for _, c := range e.CIDRs {
		if c.Prefix.Addr().Is4() {
			n++
		}
	}
	return n
}

// recheck reads EC2 soon.
func (k *Keeper) recheck(now time.Time) {
	k.recon.needEC2 = true
	k.recon.observeSoon(later(now, k.recon.askedEC2.Add(ec2Spacing)))
}
