package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// podAgain is how soon a pod that could not be read is asked for again.
const podAgain = 250 * time.Millisecond

// errOlderPod: the sandbox's pod is not the one that is known by its name.
var errOlderPod = errors.New("the API server shows another pod of this name")

// pod reads the pod of a request, which some modes need. The API server may be away for a
// moment; a pod that it does not know is gone. The kubelet may know of a pod before our
// watch does: until then the one before it has the name, whose branch ENI is its own.
func (b *backend) pod(ctx context.Context, req *cniwire.AddRequest) (cluster.Pod, error) {
	for {
		pod, err := b.kubernetes.Pod(ctx, req.PodNamespace, req.PodName)
		switch {
		case err == nil && !pod.Is(req.PodUID):
			err = fmt.Errorf("%w: its UID is %s, that of the sandbox %.64q", errOlderPod, pod.UID, req.PodUID)
		case err == nil || errors.Is(err, kube.ErrNotFound):
			return pod, err
		}
		if !pause(ctx, podAgain) {
			return pod, err
		}
	}
}

// needsPod reports that ADDs cannot be answered without the pod's object.
func (b *backend) needsPod() bool { return b.branches != nil || b.annotate }

// failPod answers an ADD whose pod cannot be read.
func (b *backend) failPod(req *cniwire.AddRequest, code cause.Code, line string, err error, took time.Duration) *cniwire.AddReply {
	b.log.Error(line+" "+err.Error(), slog.String(logline.KeyCause, string(code)), //nolint:sloglint // the original's line
		slog.String(logline.KeyPod, req.PodName), slog.String(logline.KeyNamespace, req.PodNamespace))
	b.owner.deliver(keeper.BranchFailed{
		Pod: ipam.Pod{Namespace: req.PodNamespace, Name: req.PodName}, Cause: code, Text: err.Error(), Took: took,
	})
	return &cniwire.AddReply{Cause: string(code), Detail: code.Title() + ": " + err.Error(), Transient: !errors.Is(err, kube.ErrNotFound)}
}

// podIPs is the annotation that tells others a pod's address (ANNOTATE_POD_IP).
const podIPs = "vpc.amazonaws.com/pod-ips"

// annotateLimit bounds the patches of one request, and the wait for somebody to take them.
const annotateLimit = 5 * time.Second

// announce writes the address of a pod into its annotation. If that fails the ADD fails,
// and the address is given back at once: the runtime's DEL may never come.
func (b *backend) announce(ctx context.Context, req *cniwire.AddRequest, pod cluster.Pod, reply *cniwire.AddReply) *cniwire.AddReply {
	if len(reply.Allocations) == 0 {
		return reply
	}
	began := time.Now()
	address := addressOf(reply.Allocations[0])
	ctx, cancel := b.waiting(ctx, began.Add(annotateLimit))
	defer cancel()
	err := b.annotatePod(ctx, pod, address)
	if err == nil {
		return reply
	}
	if reply.PodVLANID == 0 {
		b.release(req)
	}
	return b.failPod(req, unlessEnding(ctx, cause.PodAnnotation), textAnnotationFailed, fmt.Errorf("write %s=%s: %w", podIPs, address, err), time.Since(began))
}

// annotatePod writes the address, also when the API server is away for a moment, until ctx
// ends.
func (b *backend) annotatePod(ctx context.Context, pod cluster.Pod, address string) error {
	for {
		err := b.kubernetes.AnnotatePod(ctx, pod, podIPs, address, nil)
		if err == nil || kube.Refused(err) || !pause(ctx, podAgain) {
			return err
		}
	}
}

// release takes the address of an ADD back that fails after all, and returns when it is
// free: the caller is told that it holds none.
func (b *backend) release(req *cniwire.AddRequest) {
	done := make(chan *cniwire.DelReply, 1) // buffered: the owner never blocks on it
	b.owner.deliver(&keeper.Del{
		Request: &cniwire.DelRequest{
			PodName: req.PodName, PodNamespace: req.PodNamespace, ContainerID: req.ContainerID, IfName: req.IfName,
			NetworkName: req.NetworkName, Reason: "PodAnnotationFailed",
		},
		Reply: func(r *cniwire.DelReply) { done <- r },
	})
	_, _ = answered(b.owner, done) // false: the daemon ends, and writes no more
}

// withdraw takes the address out of the annotation of a pod that lost it, if it still says
// so: a newer sandbox of the pod may have written its own. DEL does not fail for it.
func (b *backend) withdraw(ctx context.Context, req *cniwire.DelRequest, reply *cniwire.DelReply) {
	if len(reply.Allocations) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, annotateLimit)
	defer cancel()
	pod, err := b.kubernetes.Pod(ctx, req.PodNamespace, req.PodName)
	if err == nil && pod.Is(req.PodUID) {
		// Whatever the cache has of the annotation: the ADD may have been a moment ago.
		address := addressOf(reply.Allocations[0])
		err = b.kubernetes.AnnotatePod(ctx, pod, podIPs, "", &address)
	}
	gone := errors.Is(err, kube.ErrNotFound) || errors.Is(err, kube.ErrReplaced) || errors.Is(err, kube.ErrOtherValue)
	if err != nil && !gone {
		b.log.Warn("address left in the annotation of a pod", slog.String(logline.KeyPod, req.PodName),
			slog.String(logline.KeyNamespace, req.PodNamespace), slog.Any(logline.KeyError, err))
	}
}

func addressOf(a cniwire.Allocation) string {
	if a.IPv4 != "" {
		return a.IPv4
	}
	return a.IPv6
}
