// Package cause holds the codes that say why an address could not be assigned, or why a pod
// could not be connected to the network or removed from it. The daemon, the plugin, the
// doctor and cnictl share these codes; a code is never renamed.
package cause

// Code names one cause. Its text is stable and appears in CNI error details, logs,
// metrics and introspection.
type Code string

const (
	PoolDry              Code = "pool-dry"              // nothing free, growth did not finish in time
	PoolFull             Code = "pool-full"             // instance, MAX_ENI or max-pods limit reached
	SubnetExhausted      Code = "subnet-exhausted"      // no free address in any usable subnet
	SubnetFragmented     Code = "subnet-fragmented"     // free addresses, but no free aligned /28
	NoUsableSubnet       Code = "no-usable-subnet"      // every subnet is excluded or untagged
	EC2Throttled         Code = "ec2-throttled"         // RequestLimitExceeded
	EC2Unauthorized      Code = "ec2-unauthorized"      // the IAM role lacks a permission
	EC2Error             Code = "ec2-error"             // any other EC2 failure
	ENIAttachLimit       Code = "eni-attach-limit"      // AttachmentLimitExceeded or the like
	ENILinkMissing       Code = "eni-link-missing"      // attached, but its link did not appear
	AddressesCooling     Code = "addresses-cooling"     // the free addresses are still in cooldown
	ENIConfigMissing     Code = "eniconfig-missing"     // custom networking, and the node's ENIConfig cannot be used
	TrunkMissing         Code = "trunk-missing"         // the pod wants a branch ENI, the node has no trunk ENI
	TrunkLinkMissing     Code = "trunk-link-missing"    // the node has no link for the trunk ENI
	BranchPending        Code = "branch-pending"        // the pod has no branch ENI annotation yet
	BranchInvalid        Code = "branch-invalid"        // the pod's branch ENI annotation cannot be used
	BranchConflict       Code = "branch-conflict"       // another pod of the node has the branch ENI of the pod's annotation
	LinkConflict         Code = "link-conflict"         // another pod of the node has the name of the pod's host link
	PodUnknown           Code = "pod-unknown"           // the pod could not be read from the API server
	PodAnnotation        Code = "pod-annotation"        // the pod's address annotation could not be written
	NodeUnschedulable    Code = "node-unschedulable"    // growth is off on a cordoned node
	DaemonTerminating    Code = "daemon-terminating"    // the daemon is shutting down
	DaemonStarting       Code = "daemon-starting"       // not initialised yet
	ProvisioningDisabled Code = "provisioning-disabled" // DISABLE_NETWORK_RESOURCE_PROVISIONING or IMDS-only
	CheckpointUnwritable Code = "checkpoint-unwritable" // ipam.json could not be made durable
	InvalidRequest       Code = "invalid-request"       // sandbox key, CNI_ variable or previous result incomplete or not understood
	MultiNICDisabled     Code = "multi-nic-disabled"    // the pod asks for several interfaces, ENABLE_MULTI_NIC is off
	NotSupported         Code = "not-supported"         // a mode this version does not serve
	Internal             Code = "internal"

	// Codes of the plugin.
	InvalidConfig        Code = "invalid-config"        // the network configuration cannot be used
	DaemonUnreachable    Code = "daemon-unreachable"    // ipamd is not reachable, or does not answer
	DaemonMismatch       Code = "daemon-mismatch"       // ipamd's answer is not understood
	NetnsGone            Code = "netns-gone"            // nothing at CNI_NETNS
	PodNetworkSetup      Code = "pod-network-setup"     // the kernel refused a link, address, route, rule or sysctl
	PodNetworkTeardown   Code = "pod-network-teardown"  // the kernel refused to remove one of these
	PodNetworkChanged    Code = "pod-network-changed"   // CHECK, STATUS: differs from what ADD set up
	CheckpointUnreadable Code = "checkpoint-unreadable" // GC or a start cannot read ipam.json

	// Codes about the network policy agent.
	PolicyAgentUnreachable Code = "policy-agent-unreachable" // the agent is not there, or does not answer in time
	PolicyAgentRefused     Code = "policy-agent-refused"     // the agent could not enforce the pod's policies
)

var titles = map[Code]string{
	PoolDry:              "no free address, and the pool could not grow in time",
	PoolFull:             "the node holds all the addresses its limits allow",
	SubnetExhausted:      "the subnet has no free addresses",
	SubnetFragmented:     "the subnet has no free aligned /28 block",
	NoUsableSubnet:       "no subnet can be used for new network interfaces",
	EC2Throttled:         "EC2 is throttling requests",
	EC2Unauthorized:      "the node's IAM role lacks an EC2 permission",
	EC2Error:             "an EC2 call failed",
	ENIAttachLimit:       "no more network interfaces can be attached to the instance",
	ENILinkMissing:       "an attached network interface did not appear on the node",
	AddressesCooling:     "the remaining addresses are cooling down after their last pod",
	ENIConfigMissing:     "the node's ENIConfig cannot be used",
	TrunkMissing:         "the node has no trunk network interface",
	TrunkLinkMissing:     "the trunk network interface is not on the node",
	BranchPending:        "the pod's branch network interface is not ready yet",
	BranchInvalid:        "the pod's branch network interface annotation cannot be used",
	BranchConflict:       "another pod of the node names the same branch network interface, or has its address",
	LinkConflict:         "another pod of the node has the name of the pod's host link",
	PodUnknown:           "the pod cannot be read from the API server",
	PodAnnotation:        "the pod's address could not be written to its annotation",
	NodeUnschedulable:    "the node is cordoned and the pool is frozen",
	DaemonTerminating:    "ipamd is shutting down",
	DaemonStarting:       "ipamd is still starting",
	ProvisioningDisabled: "address provisioning is disabled",
	CheckpointUnwritable: "the allocation could not be written to the checkpoint",
	InvalidRequest:       "the request is incomplete or invalid",
	MultiNICDisabled:     "the pod asks for several interfaces but ENABLE_MULTI_NIC is off",
	NotSupported:         "this version does not support that mode",
	Internal:             "internal error",

	InvalidConfig:        "the network configuration cannot be used",
	DaemonUnreachable:    "ipamd does not answer",
	DaemonMismatch:       "ipamd and aws-cni speak incompatible protocols",
	NetnsGone:            "the network namespace of the sandbox is gone",
	PodNetworkSetup:      "the pod's network could not be set up",
	PodNetworkTeardown:   "the pod's network could not be taken down",
	PodNetworkChanged:    "the pod's network is not as ADD left it",
	CheckpointUnreadable: "the allocations could not be read from the checkpoint",

	PolicyAgentUnreachable: "the network policy agent does not answer",
	PolicyAgentRefused:     "the network policy agent could not enforce the pod's policies",
}

// Title is the one-line meaning of a code, "" for an unknown one.
func (c Code) Title() string { return titles[c] }
