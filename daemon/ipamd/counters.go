package ipamd

import (
	"path"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/metrics"
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

// metadataGetters are the original's names of metadata by the last part of its path.
var metadataGetters = map[string]string{
	"macs": "GetMACs", "subnet-id": "GetSubnetID", "vpc-id": "GetVpcID", "security-group-ids": "GetSecurityGroupIDs",
	"local-ipv4s": "GetLocalIPv4s", "ipv4-prefix": "GetIPv4Prefixes", "subnet-ipv4-cidr-block": "GetSubnetIPv4CIDRBlock",
	"vpc-ipv4-cidr-blocks": "GetVPCIPv4CIDRBlocks", "network-card": "GetNetworkCard",
}

// countMetadata counts a failed read of instance metadata. Paths have no series of
// their own: they hold MACs.
func countMetadata(met *metrics.Metrics, call imds.Call) {
	if name, ok := metadataGetters[path.Base(call.Path)]; ok && call.Err != nil {
		met.IMDSError(name)
	}
}
