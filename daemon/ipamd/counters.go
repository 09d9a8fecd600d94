package ipamd

import (
	"errors"
	"net/netip"
	"slices"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/procedure"
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

// utilName is upstream's name of the step that failed an operation, "" if it has none.
func utilName(k warmpool.PendingKind, err error) string {
	if k == warmpool.PendingDetach && errors.Is(err, procedure.ErrFindAttachment) {
		return metrics.FnGetENIAttachmentID
	}
	return ""
}

// refusedName is upstream's name of an event that the address book did not take:
// the one of a reconcile, or of growth. "" if it has none.
func refusedName(e keeper.Event) string {
	prefix := slices.ContainsFunc(e.CIDRs, func(p netip.Prefix) bool { return !p.IsSingleIP() })
	byReconcile := e.Reason == keeper.ByReconcile
	switch e.Text {
	case keeper.EventName(ipam.AttachENI{}), keeper.EventName(ipam.AddCIDRs{}):
		switch {
		case byReconcile && prefix:
			return metrics.FnPrefixReconcileAdd
		case byReconcile:
			return metrics.FnIPReconcileAdd
		case prefix && e.CIDRs[0].Addr().Is6():
			return metrics.FnAddIPv6Prefixes
		case prefix:
			return metrics.FnAddIPv4Prefixes
		}
		return metrics.FnAddSecondaryIPs
	case keeper.EventName(ipam.RemoveCIDRs{}):
		if byReconcile {
			return metrics.FnIPReconcileDel // of prefixes too: upstream has no other
		}
		return metrics.FnDecrease
	case keeper.EventName(ipam.DetachENI{}):
		if byReconcile {
			return metrics.FnENIReconcileDel
		}
		return metrics.FnDecreaseFreeENI
	}
	return ""
}

// reconcileNames are upstream's names of what a reconcile changed.
var reconcileNames = map[string]string{
	string(resync.ENIFound): metrics.FnENIReconcileAdd, string(resync.ENIRemoved): metrics.FnENIReconcileDel,
	string(resync.AddressesAdded): metrics.FnPoolReconcileAdd, string(resync.AddressesRemoved): metrics.FnPoolReconcileDel,
}

// utilNames are upstream's names of what a task could not do with EC2.
var utilNames = map[string]string{
	keeper.FailedAttachKept: metrics.FnAllocENIDelete, keeper.DetachedKept: metrics.FnFreeENIDelete,
	keeper.FailedAttachAttached: metrics.FnENICleanup, procedure.LeakKept: metrics.FnCleanUpLeakedENIsDel,
}

// warnNames are upstream's names of what a task could not do on this node.
var warnNames = map[string]string{
	procedure.RulesKept: metrics.FnFreeENIDeleteRules, procedure.NotSetUp: metrics.FnENIReconcileAdd,
}
