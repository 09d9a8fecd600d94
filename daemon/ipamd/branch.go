package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// branches answers ADDs and DELs of pods that have a branch ENI: their address comes from the
// VPC resource controller, not from the pool.
type branches struct {
	kubernetes *kubernetes
	owner      *owner
	host       *hostnet.Host
	log        *slog.Logger
	ipv6       bool
	mode       string // NETWORK_POLICY_ENFORCING_MODE
	snat       bool   // AWS_VPC_K8S_CNI_EXTERNALSNAT
	claims     atomic.Pointer[cluster.Claims]
}

// trunkPoll is how often to look for an awaited trunk.
const trunkPoll = 200 * time.Millisecond

// branchError is a failed ADD of a branch pod.
type branchError struct {
	code cause.Code
	line string // upstream's log line, which users search for; "" if the keeper's is enough
	err  error
}

func (e *branchError) Error() string { return e.err.Error() }

// add answers an ADD of a branch pod. It waits for what is on its way, because a pod's first
// ADD comes before its annotation, and failing it would cost a whole sandbox.
func (b *branches) add(ctx context.Context, req *cniwire.AddRequest, pod cluster.Pod) *cniwire.AddReply {
	began := time.Now()
	pod, branch, err := b.waitForAnnotation(ctx, pod)
	var link int
	if err == nil {
		link, err = b.trunkLink(ctx)
	}
	if err == nil {
		err = untilRead(ctx, func() error { return b.undisputed(ctx, pod, branch) })
	}
	if err != nil {
		failed := &branchError{cause.PodUnknown, textNoPod, err}
		_ = errors.As(err, &failed) // otherwise other pods could not be read; it is never a success
		failed.code = unlessEnding(ctx, failed.code)
		return b.fail(req, failed, time.Since(began))
	}
	reply := &cniwire.AddReply{
		Success: true, Allocations: []cniwire.Allocation{branchAllocation(branch)},
		PodVLANID: int32(branch.VLAN), PodENIMAC: branch.MAC, PodENISubnetGW: branch.Gateway.String(), ParentIfIndex: int32(link),
		NetworkPolicyMode: b.mode, UseExternalSNAT: b.snat && !b.ipv6,
	}
	cidrs, _ := ask(b.owner, func(k *keeper.Keeper, _ time.Time) []string { return k.LocalCIDRs() })
	if b.ipv6 {
		reply.VPCv6CIDRs = cidrs
	} else {
		reply.VPCv4CIDRs = cidrs
	}
	b.log.Info("branch ENI assigned to pod", slog.String(logline.KeyENI, branch.ENI), slog.String(logline.KeyIP, branch.Address.String()),
		slog.String(logline.KeyPod, req.PodName), slog.String(logline.KeyNamespace, req.PodNamespace), slog.Duration(logline.KeyDuration, time.Since(began)))
	return reply
}

func branchAllocation(br cluster.Branch) cniwire.Allocation {
	out := cniwire.Allocation{Device: -1}
	if br.Address.Is4() {
		out.IPv4 = br.Address.String()
	} else {
		out.IPv6 = br.Address.String()
	}
	return out
}

// waitForAnnotation waits for the pod's branch ENI to be announced in its annotation, and
// returns the pod with it.
func (b *branches) waitForAnnotation(ctx context.Context, pod cluster.Pod) (cluster.Pod, cluster.Branch, error) {
	if pod.PodENI == "" {
		found, err := b.kubernetes.WaitPod(ctx, pod.Namespace, pod.Name, shows(pod))
		if err != nil && found.UID != pod.UID {
			found = pod // the watch has not shown it
		}
		switch {
		case found.UID != pod.UID:
			return pod, cluster.Branch{}, &branchError{cause.PodUnknown, textNoPod,
				fmt.Errorf("pod %s/%s was replaced by another of its name", pod.Namespace, pod.Name)}
		case found.PodENI == "" && !b.hasTrunk():
			return pod, cluster.Branch{}, errNoTrunk() // the reason why nothing is announced
		case found.PodENI == "":
			return pod, cluster.Branch{}, &branchError{cause.BranchPending, textNoBranch,
				fmt.Errorf("pod %s/%s needs a branch ENI and has no annotation vpc.amazonaws.com/pod-eni yet: the VPC resource controller writes it", pod.Namespace, pod.Name)}
		}
		pod = found
	}
	branch, err := cluster.ParseBranch(pod.PodENI, b.ipv6)
	if err == nil {
		return pod, branch, nil
	}
	line := textBadBranch
	var bad *cluster.BranchError
	if errors.As(err, &bad) {
		line = branchLines[bad.Kind]
	}
	return pod, cluster.Branch{}, &branchError{cause.BranchInvalid, line, err}
}

// shows returns a condition that ends the wait for a pod's annotation: the annotation is there, the
// pod has ended, or another pod has replaced it. The watch may lag behind the read that found this
// pod and still show its predecessor, which does not count.
func shows(pod cluster.Pod) func(cluster.Pod) bool {
	seen, earlier := false, ""
	return func(p cluster.Pod) bool {
		switch {
		case p.UID == pod.UID:
			seen = true
			return p.PodENI != "" || p.Ended
		case seen, earlier != "" && earlier != p.UID:
			return true
		}
		earlier = p.UID
		return false
	}
}

// trunkLink waits for the trunk and its link.
func (b *branches) trunkLink(ctx context.Context) (int, error) {
	for {
		trunk, there := b.trunk()
		if there {
			link, err := b.host.LinkIndex(ctx, trunk.MAC)
			if err == nil {
				return link, nil
			}
			if !pause(ctx, trunkPoll) {
				return 0, &branchError{cause.TrunkLinkMissing, textNoTrunkLink, fmt.Errorf("find the link of trunk ENI %s: %w", trunk.ID, err)}
			}
			continue
		}
		if !pause(ctx, trunkPoll) {
			return 0, errNoTrunk()
		}
	}
}

func errNoTrunk() error {
	return &branchError{cause.TrunkMissing, textNoTrunk,
		errors.New("no trunk ENI is attached: the VPC resource controller attaches one if the CNINode requests it and the instance type supports it")}
}

func (b *branches) hasTrunk() bool {
	_, there := b.trunk()
	return there
}

func (b *branches) trunk() (ipam.ENIState, bool) {
	type answer struct {
		eni   ipam.ENIState
		there bool
	}
	got, _ := ask(b.owner, func(k *keeper.Keeper, _ time.Time) answer {
		e, there := k.Trunk()
		return answer{e, there}
	})
	return got.eni, got.there
}

func (b *branches) fail(req *cniwire.AddRequest, f *branchError, took time.Duration) *cniwire.AddReply {
	if f.line != "" {
		b.log.Error("Send AddNetworkReply: "+f.line, slog.String(logline.KeyCause, string(f.code)), slog.Any(logline.KeyError, f.err), //nolint:sloglint // upstream's line
			slog.String(logline.KeyPod, req.PodName), slog.String(logline.KeyNamespace, req.PodNamespace))
	}
	b.owner.deliver(keeper.BranchFailed{
		Pod: ipam.Pod{Namespace: req.PodNamespace, Name: req.PodName}, PodUID: req.PodUID, Cause: f.code, Text: f.err.Error(), Took: took,
	})
	return &cniwire.AddReply{Cause: string(f.code), Detail: f.code.Title() + ": " + f.err.Error(), Transient: keeper.TransientCause(f.code)}
}

// del answers the DEL of a sandbox that is not in the pool: it may be a branch pod's whose
// plugin lost its own record of it. It returns false if it is not.
func (b *branches) del(ctx context.Context, req *cniwire.DelRequest) (*cniwire.DelReply, bool) {
	pod, err := b.kubernetes.Pod(ctx, req.PodNamespace, req.PodName)
	switch {
	case err != nil || pod.PodENI == "" || !pod.BranchENI:
		// Gone, or not a branch pod: nothing of it remains here.
		if err != nil && !errors.Is(err, kube.ErrNotFound) {
			b.log.Warn("pod of an unknown sandbox not read", slog.String(logline.KeyPod, req.PodName), slog.String(logline.KeyNamespace, req.PodNamespace), slog.Any(logline.KeyError, err))
		}
		return nil, false
	case !pod.Is(req.PodUID):
		// A newer pod of the same name: its branch ENI does not belong to this sandbox.
		return nil, false
	}
	branch, err := cluster.ParseBranch(pod.PodENI, b.ipv6)
	if err != nil {
		b.log.Warn("could not parse a branch pod's annotation during DEL", slog.String(logline.KeyPod, req.PodName), slog.Any(logline.KeyError, err))
		return nil, false
	}
	if err := b.undisputed(ctx, pod, branch); err != nil {
		// What the annotation names may be in use by another pod.
		b.log.Warn("branch ENI of a DEL left alone", slog.String(logline.KeyPod, req.PodName),
			slog.String(logline.KeyNamespace, req.PodNamespace), slog.Any(logline.KeyError, err))
		return nil, false
	}
	return &cniwire.DelReply{
		Success: true, PodVLANID: int32(branch.VLAN), Allocations: []cniwire.Allocation{branchAllocation(branch)}, NetworkPolicyMode: b.mode,
	}, true
}
