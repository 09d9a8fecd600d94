package keeper

import (
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// Ready reports whether a pod that came now could have an address: one is free, or the
// node simply has as many pods as it can have. A pool that is empty, or dry because
// something stands in its way, is not ready.
func (k *Keeper) Ready(now time.Time) bool {
	holds := func(e ipam.ENIState) bool { return len(e.CIDRs) > 0 }
	if k.terminating || !slices.ContainsFunc(k.book.Snapshot().ENIs, holds) {
		return false
	}
	for _, card := range k.cards() {
		code, _, blocked := warmpool.Blocked(k.snapshot(now), k.effective(), now, card)
		if !blocked || code == cause.PoolFull || code == cause.AddressesCooling {
			return true
		}
	}
	return false
}
