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

// pod reads the pod of a request, which some modes need. The API server may be away for a
// moment; a pod that it does not know is gone.
func (b *backend) pod(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	for {
		pod, err := b.kubernetes.Pod(ctx, namespace, name)
		if err == nil || errors.Is(err, kube.ErrNotFound) {
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

// annotateLimit bounds the patches of one request.
const annotateLimit = 5 * time.Second

// announce writes the address of a pod into its annotation. If that fails the ADD fails,
// and the address is given back at once: the runtime's DEL may never come.
func (b *backend) announce(ctx context.Context, req *cniwire.AddRequest, pod cluster.Pod, reply *cniwire.AddReply) *cniwire.AddReply {
	if len(reply.Allocations) == 0 {
		return reply
	}
	began := time.Now()
	address := addressOf(reply.Allocations[0])
	ctx, cancel := context.WithTimeout(ctx, annotateLimit)
	defer cancel()
	err := b.kubernetes.AnnotatePod(ctx, pod, podIPs, address, nil)
	if err == nil {
		return reply
	}
	if reply.PodVLANID == 0 {
		b.release(req)
	}
	return b.failPod(req, cause.PodAnnotation, textAnnotationFailed, fmt.Errorf("write %s=%s: %w", podIPs, address, err), time.Since(began))
}

// release takes the address of an ADD back that fails after all.
func (b *backend) release(req *cniwire.AddRequest) {
	b.owner.deliver(&keeper.Del{
		Request: &cniwire.DelRequest{
			PodName: req.PodName, PodNamespace: req.PodNamespace, ContainerID: req.ContainerID, IfName: req.IfName,
			NetworkName: req.NetworkName, Reason: "PodAnnotationFailed",
		},
		Reply: func(*cniwire.DelReply) {},
	})
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
	if err == nil && pod.PodIPs != "" {
		address := addressOf(reply.Allocations[0])
		err = b.kubernetes.AnnotatePod(ctx, pod, podIPs, "", &address)
	}
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
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
