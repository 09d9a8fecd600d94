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

// This file maps what happens here to the names in upstream's metrics.

// actionName is upstream's name for a running operation of that kind.
func actionName(k warmpool.PendingKind) string {
	switch k {
	case warmpool.PendingAttach, warmpool.PendingAssign:
		return metrics.FnIncreasePool
	default:
		return metrics.FnDecreasePool
	}
}

// errorNames are upstream's names for a failed operation. Upstream counts a missing link
// twice, where it waits and where it gives up.
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

// refusedName is upstream's name for an event that the address book rejected, from a reconcile
// or from growth; "" if it has none.
func refusedName(e keeper.BookRefused) string {
	switch ev := e.Event.(type) {
	case ipam.AttachENI:
		return refusedCIDRsName(ev.CIDRs, e.ByReconcile)
	case ipam.AddCIDRs:
		return refusedCIDRsName(ev.CIDRs, e.ByReconcile)
	case ipam.RemoveCIDRs:
		if e.ByReconcile {
			return metrics.FnIPReconcileDel // also of prefixes: upstream has no other name
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

// reconcileNames are upstream's names for what a reconcile changed.
var reconcileNames = map[resync.NoteKind]string{
	resync.ENIFound: metrics.FnENIReconcileAdd, resync.ENIRemoved: metrics.FnENIReconcileDel,
	resync.AddressesAdded: metrics.FnPoolReconcileAdd, resync.AddressesRemoved: metrics.FnPoolReconcileDel,
}
