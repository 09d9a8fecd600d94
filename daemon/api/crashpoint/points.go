package crashpoint

import "slices"

// Point is the name of a point. It appears only in the environment and in test output, so
// it may change.
type Point string

// EC2: before a request that changes something, and after its response has been read.
const (
	BeforeCreateENI Point = "before-CreateNetworkInterface"
	AfterCreateENI  Point = "after-CreateNetworkInterface"
	BeforeAttachENI Point = "before-AttachNetworkInterface"
	AfterAttachENI  Point = "after-AttachNetworkInterface"
	BeforeModifyENI Point = "before-ModifyNetworkInterfaceAttribute"
	AfterModifyENI  Point = "after-ModifyNetworkInterfaceAttribute"
	BeforeAssign    Point = "before-AssignPrivateIpAddresses"
	AfterAssign     Point = "after-AssignPrivateIpAddresses"
	BeforeUnassign  Point = "before-UnassignPrivateIpAddresses"
	AfterUnassign   Point = "after-UnassignPrivateIpAddresses"
	BeforeDetachENI Point = "before-DetachNetworkInterface"
	AfterDetachENI  Point = "after-DetachNetworkInterface"
	BeforeDeleteENI Point = "before-DeleteNetworkInterface"
	AfterDeleteENI  Point = "after-DeleteNetworkInterface"
	BeforeTags      Point = "before-CreateTags"
	AfterTags       Point = "after-CreateTags"
)

// The address book of the daemon.
const (
	BeforeBookAssign      Point = "before-book-assign"
	AfterBookAssign       Point = "after-book-assign"
	BeforeBookUnassign    Point = "before-book-unassign"
	AfterBookUnassign     Point = "after-book-unassign"
	BeforeBookAddCIDRs    Point = "before-book-add-cidrs"
	AfterBookAddCIDRs     Point = "after-book-add-cidrs"
	BeforeBookRemoveCIDRs Point = "before-book-remove-cidrs"
	AfterBookRemoveCIDRs  Point = "after-book-remove-cidrs"
	BeforeBookAttachENI   Point = "before-book-attach-eni"
	AfterBookAttachENI    Point = "after-book-attach-eni"
	BeforeBookDetachENI   Point = "before-book-detach-eni"
	AfterBookDetachENI    Point = "after-book-detach-eni"

	BeforeImage  Point = "before-image" // of the checkpoint, handed to its writer
	AfterImage   Point = "after-image"
	BeforeAnswer Point = "before-answer" // handed to the connection of the request
	AfterAnswer  Point = "after-answer"
)

// The checkpoint file. Each point ends one step and begins the next.
const (
	BeforeFile    Point = "before-file"
	FileCreated   Point = "file-created" // the temporary one, empty
	FileWritten   Point = "file-written"
	FileSynced    Point = "file-synced"
	FileRenamed   Point = "file-renamed"
	FileDirSynced Point = "file-dir-synced"
)

// The daemon's sockets. grpc writes a reply from its own goroutine after the last gRPC
// point; a crash there leaves the same state as one at AfterLeanReply.
const (
	LeanRequestRead Point = "lean-request-read"
	BeforeLeanReply Point = "before-lean-reply"
	AfterLeanReply  Point = "after-lean-reply"
	GRPCRequestRead Point = "grpc-request-read"
	BeforeGRPCReply Point = "before-grpc-reply"
)

// The daemon's share of the kernel state.
const (
	BeforeENISetUp    Point = "before-eni-set-up" // link, addresses, routes and rule of a secondary ENI
	AfterENISetUp     Point = "after-eni-set-up"
	BeforeENITearDown Point = "before-eni-tear-down" // rules of an ENI that is gone
	AfterENITearDown  Point = "after-eni-tear-down"
	BeforePodRules    Point = "before-pod-rules" // of a pod that ended, or whose rules are repaired
	AfterPodRules     Point = "after-pod-rules"
	BeforePodRoute    Point = "before-pod-route" // of a pod that ended
	AfterPodRoute     Point = "after-pod-route"
)

// The plugin. The kernel creates the pod's end of the link in the pod's namespace, so no
// link is ever moved. It takes the messages of a batch in one call, so a crash cannot split
// a batch.
const (
	PluginBeforeRequest   Point = "plugin-before-request"
	PluginRequestSent     Point = "plugin-request-sent"
	PluginReplyRead       Point = "plugin-reply-read"
	PluginBeforeOldLink   Point = "plugin-before-old-link" // deleted: an older sandbox left it
	PluginAfterOldLink    Point = "plugin-after-old-link"
	PluginBeforeLink      Point = "plugin-before-link"
	PluginAfterLink       Point = "plugin-after-link"
	PluginAfterSysctls    Point = "plugin-after-sysctls"
	PluginBeforePodSide   Point = "plugin-before-pod-side" // address, routes and neighbour in the pod
	PluginAfterPodSide    Point = "plugin-after-pod-side"
	PluginBeforeHostRules Point = "plugin-before-host-rules" // route and rules on the host, one batch
	PluginAfterHostRules  Point = "plugin-after-host-rules"
	PluginBeforeOldRules  Point = "plugin-before-old-rules" // deleted: an older pod's, for the same address
	PluginAfterOldRules   Point = "plugin-after-old-rules"
	PluginBeforeResult    Point = "plugin-before-result"
	PluginAfterResult     Point = "plugin-after-result"
	PluginBeforeUndo      Point = "plugin-before-undo" // of an ADD that failed
	PluginAfterUndo       Point = "plugin-after-undo"
	PluginBeforeTeardown  Point = "plugin-before-teardown" // route and rules on the host, one batch
	PluginAfterTeardown   Point = "plugin-after-teardown"
)

var all = []Point{
	BeforeCreateENI, AfterCreateENI, BeforeAttachENI, AfterAttachENI, BeforeModifyENI, AfterModifyENI,
	BeforeAssign, AfterAssign, BeforeUnassign, AfterUnassign, BeforeDetachENI, AfterDetachENI,
	BeforeDeleteENI, AfterDeleteENI, BeforeTags, AfterTags,

	BeforeBookAssign, AfterBookAssign, BeforeBookUnassign, AfterBookUnassign,
	BeforeBookAddCIDRs, AfterBookAddCIDRs, BeforeBookRemoveCIDRs, AfterBookRemoveCIDRs,
	BeforeBookAttachENI, AfterBookAttachENI, BeforeBookDetachENI, AfterBookDetachENI,
	BeforeImage, AfterImage, BeforeAnswer, AfterAnswer,

	BeforeFile, FileCreated, FileWritten, FileSynced, FileRenamed, FileDirSynced,

	LeanRequestRead, BeforeLeanReply, AfterLeanReply, GRPCRequestRead, BeforeGRPCReply,

	BeforeENISetUp, AfterENISetUp, BeforeENITearDown, AfterENITearDown,
	BeforePodRules, AfterPodRules, BeforePodRoute, AfterPodRoute,

	PluginBeforeRequest, PluginRequestSent, PluginReplyRead,
	PluginBeforeOldLink, PluginAfterOldLink, PluginBeforeLink, PluginAfterLink, PluginAfterSysctls,
	PluginBeforePodSide, PluginAfterPodSide, PluginBeforeHostRules, PluginAfterHostRules,
	PluginBeforeOldRules, PluginAfterOldRules, PluginBeforeResult, PluginAfterResult,
	PluginBeforeUndo, PluginAfterUndo, PluginBeforeTeardown, PluginAfterTeardown,
}

// All lists every point once.
func All() []Point { return slices.Clone(all) }
