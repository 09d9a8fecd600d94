package keeper

import (
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// Ready reports whether a pod that arrived now could get an address: one is free, or the node
// has as many pods as it can have. A pool that is empty, or dry because growth is blocked, is
// not ready.
func (k *Keeper) Ready(now time.Time) bool {
	if k.terminating || !slices.ContainsFunc(k.book.Snapshot().ENIs, k.serves) {
		return false
	}
	s, p := k.snapshot(now), k.effective(now)
	for _, card := range k.cards() {
		code, _, blocked := warmpool.Blocked(s, p, now, card)
		if !blocked || code == cause.PoolFull || code == cause.AddressesCooling {
			return true
		}
	}
	return false
}

// serves reports whether an ENI has addresses for pods, assigned or free.
func (k *Keeper) serves(e ipam.ENIState) bool {
	return !e.Held && !e.Quarantined() && !e.Excluded && !(k.policy.CustomNetworking && e.Primary) &&
		slices.ContainsFunc(e.CIDRs, func(c ipam.CIDRState) bool { return !c.Held && !c.Quarantined() })
}
