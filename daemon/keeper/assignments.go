package keeper

import (
	"errors"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// firstCard is the only network card that gives addresses to pods on most nodes.
var firstCard = []int{0}

// cards returns the network cards that give addresses to pods, the first card first. The
// caller must not change the slice.
func (k *Keeper) cards() []int {
	if !k.settings.MultiNIC {
		return firstCard
	}
	out := []int{0}
	for card := 1; card < len(k.limits.ENIsByCard); card++ {
		if !k.recon.servesNone(card) {
			out = append(out, card)
		}
	}
	return out
}

// taken is what a request got.
type taken struct {
	all   []ipam.Assignment // by card
	fresh []ipam.Assignment // those of them that are new
}

// takeAddresses assigns a request its addresses: one, from the first card that has one, or for
// a pod with an interface per network card either one per card or none at all.
// [ipam.ErrNoAddress] means that nothing has changed.
func (k *Keeper) takeAddresses(r *Add, owed int, now time.Time) (taken, error) {
	if !r.Request.RequiresMultiNIC {
		return k.takeOne(r, owed, now)
	}
	var out taken
	for _, card := range k.cards() {
		got, err := k.assignOn(r, card, card, now)
		if err != nil {
			k.giveUp(out.fresh, now)
			return taken{}, err
		}
		out.add(got)
	}
	return out, nil
}

func (k *Keeper) takeOne(r *Add, owed int, now time.Time) (out taken, err error) {
	if k.holds(r.sandbox(0)) {
		owed = 0 // it takes no new address
	}
	for _, card := range k.cards() {
		if owed > 0 && k.spare(card, now) <= owed {
			err = ipam.ErrNoAddress
			continue
		}
		got, cardErr := k.assignOn(r, card, 0, now)
		if cardErr == nil {
			out.add(got)
			return out, nil
		}
		if !errors.Is(cardErr, ipam.ErrNoAddress) {
			return taken{}, cardErr
		}
		if err == nil {
			err = cardErr // the first card is the one to grow
		}
	}
	return taken{}, err
}

// spare counts the addresses of a card that are free now.
func (k *Keeper) spare(card int, now time.Time) int {
	s := k.book.Snapshot()
	return s.Totals(card, ipam.SecondaryIPs, now, k.policy.Cooldown).Free + s.Totals(card, ipam.Prefixes, now, k.policy.Cooldown).Free
}

func (t *taken) add(ch ipam.Change) {
	t.all = join(t.all, ch.Assigned)
	if !ch.Existing {
		t.fresh = join(t.fresh, ch.Assigned)
	}
}

// join is append, except that it reuses more if all is empty: most requests get one address.
func join(all, more []ipam.Assignment) []ipam.Assignment {
	if len(all) == 0 {
		return slices.Clip(more)
	}
	return append(all, more...)
}

// assignOn assigns an address of one card. It tries the active kind of CIDR first, then the
// other one: an address of a former mode that still works is better than a failed pod.
func (k *Keeper) assignOn(r *Add, card, iface int, now time.Time) (ipam.Change, error) {
	ev := ipam.Assign{Sandbox: r.sandbox(iface), Pod: k.podOf(r), Card: card, Family: k.family(), Kind: k.kind()}
	ch, err := k.book.Apply(now, ev)
	if errors.Is(err, ipam.ErrNoAddress) && ev.Family == ipam.IPv4 {
		ev.Kind = k.otherKind()
		if other, otherErr := k.book.Apply(now, ev); otherErr == nil {
			ch, err = other, nil
		}
	}
	if err != nil {
		return ch, err
	}
	if a := ch.Assigned[0]; k.unsettled[a.Address] && !ch.Existing {
		// The DEL of its last pod is not on disk, so it may still be reverted.
		k.apply(now, ipam.Revert{Sandbox: a.Sandbox})
		return ipam.Change{}, ipam.ErrNoAddress
	}
	return ch, nil
}

// giveUp reverts assignments that were never reported.
func (k *Keeper) giveUp(fresh []ipam.Assignment, now time.Time) {
	for _, a := range fresh {
		k.apply(now, ipam.Revert{Sandbox: a.Sandbox})
	}
}

// keep records a request's addresses in the ledger.
func (k *Keeper) keep(t taken) {
	for _, a := range t.all {
		delete(k.recon.absent, a.Sandbox) // its link is about to be made again
	}
	for _, a := range t.fresh {
		delete(k.bound, podName{a.Pod.Namespace, a.Pod.Name})
		delete(k.missed, podName{a.Pod.Namespace, a.Pod.Name})
		k.ledger.put(a)
		k.changed()
	}
}

// holdsAll reports whether the book still has these assignments: a DEL may have ended them
// meanwhile, or the failed write of an ADD that this one repeats.
func (k *Keeper) holdsAll(all []ipam.Assignment) bool {
	for _, a := range all {
		if have, ok := k.book.Lookup(a.Sandbox); !ok || have.Address != a.Address {
			return false
		}
	}
	return true
}

// revert reverts assignments that were never answered, unless the sandbox's DEL has ended
// them since. It returns those that it reverted.
func (k *Keeper) revert(fresh []ipam.Assignment, now time.Time) (reverted []ipam.Assignment) {
	for _, a := range fresh {
		if have, ok := k.book.Lookup(a.Sandbox); !ok || have.Address != a.Address {
			continue
		}
		k.apply(now, ipam.Revert{Sandbox: a.Sandbox})
		k.ledger.remove(a.Sandbox)
		k.changed()
		reverted = append(reverted, a)
	}
	return reverted
}

// held returns the assignments of a sandbox: of one interface, or of one per card.
func (k *Keeper) held(s ipam.Sandbox) []ipam.Assignment { return k.book.Interfaces(s) }

// holds reports whether a sandbox has an address.
func (k *Keeper) holds(s ipam.Sandbox) bool {
	return k.anyKey(s, func(key ipam.Sandbox) bool { return has(k.ledger.home, key) })
}

// anyKey reports whether a predicate holds for one of the keys under which a sandbox may have
// addresses. This includes cards that are no longer used.
func (k *Keeper) anyKey(s ipam.Sandbox, is func(ipam.Sandbox) bool) bool {
	return slices.ContainsFunc(k.ledger.cards, func(card int) bool {
		s.Interface = card
		return is(s)
	})
}

func (k *Keeper) podOf(r *Add) ipam.Pod {
	p := r.pod()
	if r.Request.RequiresMultiNIC {
		p.Interfaces = len(k.cards())
	}
	return p
}

func (k *Keeper) family() ipam.Family {
	if k.settings.IPv6 {
		return ipam.IPv6
	}
	return ipam.IPv4
}

// refuseMultiNIC returns why a pod cannot have an interface per network card, "" if it can.
func (k *Keeper) refuseMultiNIC(r *Add) (cause.Code, string) {
	switch {
	case !r.Request.RequiresMultiNIC:
		return "", ""
	case !k.settings.MultiNIC:
		return cause.MultiNICDisabled, "pod annotation k8s.amazonaws.com/nicConfig asks for several interfaces"
	}
	return "", ""
}
