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

// podAgain is how soon a pod that could not be read is requested again.
const podAgain = 250 * time.Millisecond

// errOlderPod means that the sandbox's pod is not the one now known by its name.
var errOlderPod = errors.New("the API server shows another pod of this name")

// pod reads the pod of a request, which some modes need. It retries if the API server is
// briefly unreachable; a pod that the API server does not know is gone. The kubelet may know
// of a pod before our watch does: until then its predecessor, with its own branch ENI, is
// found under that name.
func (b *backend) pod(ctx context.Context, req *cniwire.AddRequest) (cluster.Pod, error) {
	read := b.kubernetes.Pod
	for fresh := false; ; {
		pod, err := read(ctx, req.PodNamespace, req.PodName)
		switch {
		case err == nil && !pod.Is(req.PodUID) && !fresh:
			read, fresh = b.kubernetes.PodFresh, true // the cache lags behind
			continue
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

// needsPod reports whether ADDs need the pod's object.
func (b *backend) needsPod() bool { return b.branches != nil || b.annotate }

// failPod answers an ADD that fails because of what the API server knows, or does not.
func (b *backend) failPod(req *cniwire.AddRequest, code cause.Code, line string, err error, took time.Duration) *cniwire.AddReply {
	if line != "" { // otherwise the keeper's is enough
		b.log.Error(line+" "+err.Error(), slog.String(logline.KeyCause, string(code)), //nolint:sloglint // upstream's line
			slog.String(logline.KeyPod, req.PodName), slog.String(logline.KeyNamespace, req.PodNamespace))
	}
	b.owner.deliver(keeper.BranchFailed{
		Pod: ipam.Pod{Namespace: req.PodNamespace, Name: req.PodName}, PodUID: req.PodUID, Cause: code, Text: err.Error(), Took: took,
	})
	return &cniwire.AddReply{
		Cause: string(code), Detail: code.Title() + ": " + err.Error(),
		Transient: keeper.TransientCause(code) && !errors.Is(err, kube.ErrNotFound),
	}
}

// podIPs is the annotation that shows a pod's address to others (ANNOTATE_POD_IP).
const podIPs = "vpc.amazonaws.com/pod-ips"

// annotateLimit bounds the patches of one request, and the wait for a free worker.
const annotateLimit = 5 * time.Second

// awaitAPIServer checks, while the API server is known to be lost, whether it is back, before an
// ADD takes an address whose annotation would fail. It waits as long as the annotation would.
func (b *backend) awaitAPIServer(ctx context.Context) error {
	if !b.annotate || !b.kubernetes.lost.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, annotateLimit)
	defer cancel()
	for {
		// The watches may notice much later that it is back.
		_, err := b.kubernetes.ServerVersion(ctx)
		switch {
		case err == nil:
			return nil
		case !pause(ctx, podAgain):
			return fmt.Errorf("write %s: the API server is lost: %w", podIPs, err)
		}
	}
}

// annotateAddress writes a pod's address into its annotation. If that fails the ADD fails, and the
// address is given back at once: the runtime's DEL may never come. add is the request to the
// keeper, nil if the address is not from the pool.
func (b *backend) annotateAddress(ctx context.Context, req *cniwire.AddRequest, pod cluster.Pod, reply *cniwire.AddReply, add *keeper.Add) *cniwire.AddReply {
	if len(reply.Allocations) == 0 {
		return reply
	}
	began := time.Now()
	address := addressOf(reply.Allocations[0])
	ctx, cancel := b.waiting(ctx, annotateLimit)
	defer cancel()
	err := b.annotatePod(ctx, pod, address)
	if err == nil {
		return reply
	}
	if add != nil {
		b.takeBack(add)
	}
	return b.failPod(req, unlessEnding(ctx, cause.PodAnnotation), textAnnotationFailed, fmt.Errorf("write %s=%s: %w", podIPs, address, err), time.Since(began))
}

// annotatePod writes the address, retrying until ctx ends if the API server is briefly
// unreachable.
func (b *backend) annotatePod(ctx context.Context, pod cluster.Pod, address string) error {
	for {
		err := b.kubernetes.AnnotatePod(ctx, pod, podIPs, address, nil)
		if err == nil || kube.Refused(err) || !pause(ctx, podAgain) {
			return err
		}
	}
}

// takeBack frees the addresses of an ADD that fails after all, and returns when they are free:
// the reply says that the sandbox has no address.
func (b *backend) takeBack(add *keeper.Add) {
	done := make(chan struct{}, 1) // buffered: the owner never blocks on it
	b.owner.deliver(keeper.TakeBack{Add: add, Done: func() { done <- struct{}{} }})
	_, _ = answered(b.owner, done) // false if the daemon ends, and writes nothing more
}

// Bounds of the work that DELs do in the background.
const (
	// withdrawPatience is how long a DEL waits for it nevertheless: if the API server
	// responds, the annotation is empty when the DEL is answered.
	withdrawPatience = time.Second
	withdrawalsMost  = 64
)

// withdrawInBackground withdraws an address in the background of its DEL, whose answer does not wait
// for an unreachable API server.
func (b *backend) withdrawInBackground(ctx context.Context, req *cniwire.DelRequest, reply *cniwire.DelReply) {
	select {
	case b.withdrawals <- struct{}{}:
	default:
		b.leftAnnotated(req, errors.New("the API server cannot keep up with DELs"))
		return
	}
	done := make(chan struct{})
	b.beside(func(ctx context.Context) {
		defer close(done)
		defer func() { <-b.withdrawals }()
		b.withdraw(ctx, req, reply)
	})
	if b.kubernetes.lost.Load() {
		return
	}
	timer := time.NewTimer(withdrawPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// withdraw removes the address from the annotation of a pod that lost it, if it is still
// there: a newer sandbox of the pod may have written its own. A failure does not fail the DEL.
func (b *backend) withdraw(ctx context.Context, req *cniwire.DelRequest, reply *cniwire.DelReply) {
	if len(reply.Allocations) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, annotateLimit)
	defer cancel()
	pod, err := b.kubernetes.Pod(ctx, req.PodNamespace, req.PodName)
	if err == nil && pod.Is(req.PodUID) {
		// Regardless of the annotation in the cache: the ADD may have been a moment ago.
		address := addressOf(reply.Allocations[0])
		err = b.kubernetes.AnnotatePod(ctx, pod, podIPs, "", &address)
	}
	gone := errors.Is(err, kube.ErrNotFound) || errors.Is(err, kube.ErrReplaced) || errors.Is(err, kube.ErrOtherValue)
	if err != nil && !gone {
		b.leftAnnotated(req, err)
	}
}

func (b *backend) leftAnnotated(req *cniwire.DelRequest, err error) {
	b.log.Warn("address left in the annotation of a pod", slog.String(logline.KeyPod, req.PodName),
		slog.String(logline.KeyNamespace, req.PodNamespace), slog.Any(logline.KeyError, err))
}

func addressOf(a cniwire.Allocation) string {
	if a.IPv4 != "" {
		return a.IPv4
	}
	return a.IPv6
}
