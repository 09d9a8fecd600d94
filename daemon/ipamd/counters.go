package ipamd

import (
	"net/netip"
	"slices"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// This file puts what happens here under the names that upstream's metrics have
// for it (spec/ipamd.md §8.1).

// actionName is upstream's name of an operation of that kind while it runs.
func actionName(k warmpool.PendingKind) string {
	switch k {
	case warmpool.PendingAttach, warmpool.PendingAssign:
		return metrics.FnIncreasePool
	default:
		return metrics.FnDecreasePool
	}
}

// errorNames are upstream's names of a failed operation. It counts a link that does
// not come twice, where it waits and where it gives up.
func errorNames(k warmpool.PendingKind, why cause.Code) []string {
	switch k {
	case warmpool.PendingAttach:
		switch why {
		case cause.ENILinkMissing:
			return []string{metrics.FnWaitENIAttachedRetries, metrics.FnIncreaseWaitENI}
		case cause.Internal:
			return []string{metrics.FnIncreaseSetupENI}
		}
		return []string{metrics.FnIncreaseAllocENI}
	case warmpool.PendingAssign:
		return []string{metrics.FnIncreaseAllocIPs}
	case warmpool.PendingDetach:
		return []string{metrics.FnDecreaseFreeENI}
	default:
		return []string{metrics.FnDecrease}
	}
}

// refusedName is upstream's name of an event that the address book did not take:
// the one of a reconcile, or of growth. "" if it has none.
func refusedName(e keeper.BookRefused) string {
	switch ev := e.Event.(type) {
	case ipam.AttachENI:
		return refusedCIDRsName(ev.CIDRs, e.ByReconcile)
	case ipam.AddCIDRs:
		return refusedCIDRsName(ev.CIDRs, e.ByReconcile)
	case ipam.RemoveCIDRs:
		if e.ByReconcile {
			return metrics.FnIPReconcileDel // of prefixes too: upstream has no other
		}
		return metrics.FnDecrease
	case ipam.DetachENI:
		if e.ByReconcile {
			return metrics.FnENIReconcileDel
		}
		return metrics.FnDecreaseFreeENI
	}
	return ""
}

func refusedCIDRsName(cidrs []netip.Prefix, byReconcile bool) string {
	prefix := slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return !p.IsSingleIP() })
	switch {
	case byReconcile && prefix:
		return metrics.FnPrefixReconcileAdd
	case byReconcile:
		return metrics.FnIPReconcileAdd
	case prefix && cidrs[0].Addr().Is6():
		return metrics.FnAddIPv6Prefixes
	case prefix:
		return metrics.FnAddIPv4Prefixes
	}
	return metrics.FnAddSecondaryIPs
}

// reconcileNames are upstream's names of what a reconcile changed.
var reconcileNames = map[resync.NoteKind]string{
	resync.ENIFound: metrics.FnENIReconcileAdd, resync.ENIRemoved: metrics.FnENIReconcileDel,
	resync.AddressesAdded: metrics.FnPoolReconcileAdd, resync.AddressesRemoved: metrics.FnPoolReconcileDel,
}
