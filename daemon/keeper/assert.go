package keeper

import (
	"time"

	"cnictl/daemon/ipam"
)

// ENIs lists the ENIs of the book; ENIs that are being detached are Held.
func (k *Keeper) ENIs() []ipam.ENIState { return k.book.Snapshot().ENIs }

// CheckpointGone reports that checkpoint files were removed: they are to be written again.
type CheckpointGone struct{}

func (CheckpointGone) handle(k *Keeper, _ time.Time) {
	k.ledger.touch()
	k.changed()
}
