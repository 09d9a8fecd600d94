package ipamd

import (
	"regexp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/keeper"
	"cnictl/daemon/notice"
)

// notices tells people in the cluster what goes wrong: Kubernetes events on the pod that
// got no address, on the Node, and, as in the original, on the daemon's own pod when the
// IAM role lacks a permission. The client holds back what comes too often, and sends
// beside whoever asks.
type notices struct{ kube *kubernetes }

// take sends the events that follow from a change.
func (n *notices) take(e keeper.Event) {
	for _, ev := range noticesOf(e, n.kube.OwnNode(), n.kube.OwnPod()) {
		n.kube.EmitLater(ev)
	}
}

// noticesOf are the events of a change. node and own are the Node and the daemon's own pod;
// one without a name is not known, and not told of.
func noticesOf(e keeper.Event, node, own notice.Ref) (out []notice.Event) {
	detail := e.Text
	if e.Err != nil {
		detail = e.Err.Error()
	}
	on := func(about notice.Ref, code cause.Code, action string) {
		if about.Name != "" {
			out = append(out, notice.For(code, about, action, detail))
		}
	}
	switch e.Kind {
	case keeper.AddFailed:
		on(notice.Ref{Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: objectUID(e.PodUID)}, e.Cause, "")
		return out
	case keeper.SubnetsFailed:
		if node.Name != "" {
			out = append(out, notice.SubnetExclusionUnknown(node, "of the node's availability zone", detail))
		}
	case keeper.SubnetShort, keeper.ENIConfigFailed, keeper.CheckpointFailed, keeper.TrunkGivenUp:
		code := e.Cause
		if e.Kind == keeper.TrunkGivenUp {
			code = cause.TrunkMissing
		}
		on(node, code, "")
	case keeper.ActionFailed:
		if lastingCause(e.Cause) {
			on(node, e.Cause, "")
		}
	}
	// An event that cannot name the action helps nobody, and would stand where one does.
	if action := vpcapi.MissingAction(e.Err); e.Cause == cause.EC2Unauthorized && action != "" {
		on(own, e.Cause, action)
		on(node, e.Cause, action)
	}
	return out
}

// uidForm is that of the UIDs that an API server gives.
var uidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// objectUID is the UID of a pod's object by that which a runtime knows, "" if it cannot be
// told: the kubelet makes one of another form for static pods, which their mirrors in the
// API server do not have. With it a pod is told from the one that had its name before.
func objectUID(uid string) string {
	if uidForm.MatchString(uid) {
		return uid
	}
	return ""
}

// lastingCause reports that a failed change of the pool is worth an event: it does not
// mend itself. Others have an event of their own or pass.
func lastingCause(c cause.Code) bool {
	switch c {
	case cause.ENIAttachLimit, cause.ENILinkMissing, cause.NoUsableSubnet, cause.SubnetFragmented:
		return true
	}
	return false
}
