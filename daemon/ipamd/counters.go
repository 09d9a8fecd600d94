package ipamd

import (
	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
	"cnictl/daemon/procedure"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// This file puts what happens here under the names that the original's metrics have
// for it (spec/ipamd.md §8.1).

// actionName is the original's name of an operation of that kind while it runs.
func actionName(k warmpool.PendingKind) string {
	switch k {
	case warmpool.PendingAttach, warmpool.PendingAssign:
		return metrics.FnIncreasePool
	default:
		return metrics.FnDecreasePool
	}
}

// errorName is the original's name of a failed operation of that kind.
func errorName(k warmpool.PendingKind, why cause.Code) string {
	switch k {
	case warmpool.PendingAttach:
		switch why {
		case cause.ENILinkMissing:
			return metrics.FnIncreaseWaitENI
		case cause.Internal:
			return metrics.FnIncreaseSetupENI
		}
		return metrics.FnIncreaseAllocENI
	case warmpool.PendingAssign:
		return metrics.FnIncreaseAllocIPs
	case warmpool.PendingDetach:
		return metrics.FnDecreaseFreeENI
	default:
		return metrics.FnDecrease
	}
}

// reconcileNames are the original's names of what a reconcile changed.
var reconcileNames = map[string]string{
	string(resync.ENIFound): metrics.FnENIReconcileAdd, string(resync.ENIRemoved): metrics.FnENIReconcileDel,
	string(resync.AddressesAdded): metrics.FnPoolReconcileAdd, string(resync.AddressesRemoved): metrics.FnPoolReconcileDel,
}

// utilNames are the original's names of what a task could not do.
var utilNames = map[string]string{
	keeper.FailedAttachKept: metrics.FnAllocENIDelete, keeper.DetachedKept: metrics.FnFreeENIDelete,
	procedure.LeakKept: metrics.FnCleanUpLeakedENIsDel,
}
