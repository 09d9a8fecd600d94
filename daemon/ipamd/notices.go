package ipamd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/smithy-go"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/keeper"
	"cnictl/daemon/notice"
)

// noticeQueue bounds the events that wait to be sent; more are dropped, as the API
// server's clients do.
const noticeQueue = 128

// notices tells people in the cluster what goes wrong: Kubernetes events on the pod that
// got no address, on the Node, and, as in the original, on the daemon's own pod when the
// IAM role lacks a permission. What comes too often is held back.
type notices struct {
	log    *slog.Logger
	kube   *kubernetes
	config config.Config
	queue  chan notice.Event
	limits *notice.Limiter
}

func newNotices(log *slog.Logger, kube *kubernetes, c config.Config) *notices {
	return &notices{log: log, kube: kube, config: c, queue: make(chan notice.Event, noticeQueue), limits: notice.NewLimiter(notice.DefaultPolicy())}
}

// take makes the events that follow from a change. It does not block: the owner's
// goroutine calls it.
func (n *notices) take(e keeper.Event) {
	for _, ev := range noticesOf(e, n.config.NodeName, n.config.PodName) {
		select {
		case n.queue <- ev:
		default: // told by log and metrics all the same
		}
	}
}

// agentNamespace is where the daemon's own pod is.
const agentNamespace = "kube-system"

// noticesOf are the events of a change: of nodes only with a node's name, of the own pod
// only with the pod's.
func noticesOf(e keeper.Event, nodeName, podName string) (out []notice.Event) {
	node := notice.Ref{Kind: "Node", Name: nodeName}
	own := notice.Ref{Kind: "Pod", Namespace: agentNamespace, Name: podName}
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
		on(notice.Ref{Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name}, e.Cause, "")
		return out
	case keeper.SubnetsFailed:
		if nodeName != "" {
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
	if e.Cause == cause.EC2Unauthorized {
		action := ec2Action(e.Err)
		on(own, e.Cause, action)
		on(node, e.Cause, action)
	}
	return out
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

// ec2Action is the action that EC2 refused.
func ec2Action(err error) string {
	var operation *smithy.OperationError
	if errors.As(err, &operation) {
		return operation.Operation()
	}
	return ""
}

// send sends what is queued until ctx ends.
func (n *notices) send(ctx context.Context) {
	for {
		select {
		case e := <-n.queue:
			held, ok := n.limits.Allow(time.Now(), e)
			if !ok {
				continue
			}
			if err := n.kube.Emit(ctx, e.Repeated(held)); err != nil && ctx.Err() == nil {
				n.log.Debug("event not sent", slog.String(logline.KeyReason, e.Reason), slog.Any(logline.KeyError, err))
			}
		case <-ctx.Done():
			return
		}
	}
}
