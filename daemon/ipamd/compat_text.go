package ipamd

import (
	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
)

// Texts that guides, support staff and tools search for, as upstream prints them. Where no
// record exists of the wording after a text of logline, the wording is ours.
const (
	textStarting       = logline.TextStarting
	textInitFailure    = "Initialization failure"
	textInitDone       = logline.TextInitDone
	textNoENIs         = "ipamd init: failed to retrieve attached ENIs info"
	textHostNetwork    = "ipamd init: failed to set up host network"
	textValidation     = "ipamd: failed to validate configuration"
	textUnknownType    = "vpc ip resource(eni ip limit): unknown instance type %s"
	textNoAddress      = logline.TextNoAddress
	textNoKey          = logline.TextNoKey + " %s"
	textMultiNICOff    = logline.TextMultiNICOff + " (%s)"
	textStoreFailed    = logline.TextStoreFailed + " %s"
	textUnknownSandbox = logline.TextUnknownSandbox
	textSubnetShort    = logline.TextSubnetShort + ". Consider using new subnet or carve a reserved range using create-subnet-cidr-reservation"
	textFreed          = logline.TextFreed + ": %s"
	textENISetUp       = "ENI %s set up."
	textStale          = logline.TextStale
	textReconciled     = "Successfully Reconciled ENI/IP pool"
	textServing        = logline.TextServing

	// About the API server and the Node.
	textAPIReached     = logline.TextAPIReached + " %s"
	textAPISilent      = logline.TextAPISilent + ", will retry"
	textAPIUnreachable = logline.TextAPIUnreachable + ", will retry"
	textNonSchedulable = logline.TextNonSchedulable + " the pool changes for waiting pods only"

	// About the pool. maxIPsPerENI counts addresses in prefix mode, too.
	textTargets     = logline.TextTargets + " %d, warm IP target: %d, warm prefix target: %d, warm ENI target: %d, minimum IP target: %d"
	textStats       = logline.TextStats + "%d - total IPs: %d, assigned IPs: %d, cooldown IPs: %d"
	textOfPoolStats = "%d: Total IPs/Prefixes = %d/%d, AssignedIPs/CooldownIPs: %d/%d, c.maxIPsPerENI = %d"
	textPoolStats   = logline.TextPoolStats + textOfPoolStats
	textPrefixStats = logline.TextPrefixPoolStats + textOfPoolStats
	textPoolLow     = logline.TextPoolLow + " %d"
	textENILimit    = logline.TextENILimit
	textCooling     = "IP %s " + logline.TextCooling + " of %s (available after %s)"
	textCooled      = "IP %s " + logline.TextCooled

	// About network interfaces.
	textCreateFailed     = logline.TextCreateFailed + " %v for subnet %s"
	textAllocateFailed   = logline.TextAllocateFailed + " %s: %v"
	textDetachFailed     = logline.TextDetachFailed + " %s: %v"
	textDeleteFailed     = logline.TextDeleteFailed + " %s: %v"
	textOutOfSync        = logline.TextOutOfSync
	textDetachedENI      = logline.TextDetachedENI + " %s"
	textNotDeletable     = "ENI %s " + logline.TextNotDeletable + " %s"
	textLeaked           = "Found %d " + logline.TextLeaked
	textMarkingUnmanaged = logline.TextMarkingUnmanaged + " %s " + logline.TextAsUnmanaged
	textSkipUnmanaged    = logline.TextSkippingUnmanaged + " %s: " + logline.TextSinceUnmanaged

	// About pods with branch ENIs, after "Send AddNetworkReply: ", and about annotations.
	textNoPod            = "Failed to get pod:"
	textNoTrunkSlot      = logline.TextNoTrunkSlot
	textNoTrunk          = "No trunk ENI found, cannot add a pod ENI"
	textNoTrunkLink      = "No trunk ENI Link Index found, cannot add a pod ENI"
	textNoBranch         = "failed to get Branch ENI resource"
	textBadBranch        = "Failed to parse pod-ENI annotation:"
	textAnnotationFailed = "Failed to add the pod annotation:"
)

// branchLines are upstream's lines for the possible faults of a branch annotation.
var branchLines = map[cluster.BranchFault]string{
	cluster.BranchMissing:   textNoBranch,
	cluster.BranchMalformed: "Failed to unmarshal PodENIData JSON:",
	cluster.BranchInvalid:   textBadBranch,
	cluster.BranchSubnet4:   "Failed to parse V4 subnet CIDR:",
	cluster.BranchSubnet6:   "Failed to parse V6 subnet CIDR:",
}
