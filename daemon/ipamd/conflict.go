package ipamd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// textBranchConflict is the log line, after "Send AddNetworkReply: ", of a pod whose annotation
// names the branch ENI of another. Upstream gives the pod that one.
const textBranchConflict = "Branch ENI of the pod is that of another pod:"

// unreadError means that the pods of the node could not be read.
type unreadError struct{ err error }

func (e *unreadError) Error() string {
	return "read which other pods the node has, because one may have the same branch ENI or host link: " + e.err.Error()
}
func (e *unreadError) Unwrap() error { return e.err }

// untilRead repeats a check while the pods of the node cannot be read, until ctx ends.
func untilRead(ctx context.Context, check func() error) error {
	for {
		err := check()
		var unread *unreadError
		if !errors.As(err, &unread) || kube.Refused(err) || !pause(ctx, podAgain) {
			return err
		}
	}
}

// undisputed fails if another pod of the node has what a branch pod is to get: the branch ENI
// in its annotation, or its host link. Anyone who may write annotations can name the branch ENI of
// another pod there, and the plugin gives it to the pod that comes last. Which pod it belongs to
// cannot be told from the annotations, so neither gets it until one of them has ended or names
// another. The pod that has it keeps it.
//
// Usually the watched pods show that there is no such pod, without a call. Otherwise the watch
// lags behind, or the other pod may have ended: one call decides.
func (b *branches) undisputed(ctx context.Context, pod cluster.Pod, branch cluster.Branch) error {
	if err := b.inPool(pod, branch); err != nil {
		return err
	}
	watched, _, current := b.kubernetes.WatchedPods(cluster.Pod.MayHoldLink, pod)
	disputed := b.disputed(pod, branch, watched)
	if current && disputed == nil {
		return nil
	}
	listed, err := b.kubernetes.ListPods(ctx, pod.NodeName)
	switch {
	case err == nil:
		return b.disputed(pod, branch, listed)
	case disputed != nil:
		return disputed
	}
	return &unreadError{err}
}

// disputed fails if one of the pods has what a branch pod is to get.
func (b *branches) disputed(pod cluster.Pod, branch cluster.Branch, all []cluster.Pod) error {
	hashes := netnames.Hashes(pod.Namespace, pod.Name, 1)
	if i := slices.IndexFunc(all, func(p cluster.Pod) bool { return p.HoldsLinkOf(pod.Namespace, pod.Name, hashes) }); i >= 0 {
		return &branchError{cause.LinkConflict, "", keeper.LinkTakenError(hashes[0], all[i].Namespace, all[i].Name)}
	}
	rival, shared, found := b.claimed(all).Rival(pod, branch)
	if !found {
		return nil
	}
	return &branchError{cause.BranchConflict, textBranchConflict,
		fmt.Errorf("the annotation vpc.amazonaws.com/pod-eni of pod %s/%s names %s, as does that of pod %s/%s: "+
			"one of them is not from the VPC resource controller; find out who wrote it, and delete that pod",
			pod.Namespace, pod.Name, shared, rival.Namespace, rival.Name)}
}

// claimed returns what the pods' annotations name. Annotations are read once.
func (b *branches) claimed(all []cluster.Pod) cluster.Claims {
	var last cluster.Claims
	if have := b.claims.Load(); have != nil {
		last = *have
	}
	claims := cluster.ClaimsOf(all, last)
	b.claims.Store(&claims)
	return claims
}

// inPool fails if a pod with an address of the pool has the branch ENI's address, or the host
// link, of a branch pod.
func (b *branches) inPool(pod cluster.Pod, branch cluster.Branch) error {
	err, ok := ask(b.owner, func(k *keeper.Keeper, _ time.Time) error {
		own := ipam.Pod{Namespace: pod.Namespace, Name: pod.Name}
		if err := k.LinkTaken(own); err != nil {
			return &branchError{cause.LinkConflict, "", err}
		}
		other, held := k.AtAddress(branch.Address)
		if !held {
			return nil
		}
		holder := "pod " + other.Pod.Namespace + "/" + other.Pod.Name
		if other.Pod.Name == "" { // rebuilt from the kernel
			holder = "another pod"
		}
		return &branchError{cause.BranchConflict, textBranchConflict,
			fmt.Errorf("the annotation vpc.amazonaws.com/pod-eni of pod %s/%s names address %s, which %s has from the node's pool: "+
				"it is not from the VPC resource controller; find out who wrote it, and delete the pod",
				pod.Namespace, pod.Name, branch.Address, holder)}
	})
	if !ok {
		return &branchError{cause.DaemonTerminating, cause.DaemonTerminating.Title(), errEnded}
	}
	return err
}

// linkFree fails if a pod that the API server shows has one of the host links that a request
// for an address of the pool asks for. The book knows the other pods of the pool; the API server
// knows branch pods, and the names of pods that the book was rebuilt without. Only nodes with
// branch ENIs wait for the API server.
func (b *backend) linkFree(ctx context.Context, req *cniwire.AddRequest, pod cluster.Pod) error {
	if b.kubernetes == nil {
		return nil
	}
	interfaces := 1
	if req.RequiresMultiNIC {
		interfaces, _ = ask(b.owner, func(k *keeper.Keeper, _ time.Time) int { return k.Cards() })
	}
	hashes := netnames.Hashes(req.PodNamespace, req.PodName, interfaces)
	holds := func(p cluster.Pod) bool { return p.HoldsLinkOf(req.PodNamespace, req.PodName, hashes) }
	found, listed, _ := b.kubernetes.WatchedPods(holds, cluster.Pod{})
	if !listed && b.branches != nil {
		all, err := b.kubernetes.ListPods(ctx, pod.NodeName)
		if err != nil {
			return &unreadError{err}
		}
		found = slices.DeleteFunc(all, func(p cluster.Pod) bool { return !holds(p) })
	}
	if len(found) == 0 {
		return nil
	}
	return keeper.LinkTakenError(found[0].LinkHash, found[0].Namespace, found[0].Name)
}

// failLink answers an ADD for which linkFree failed.
func (b *backend) failLink(req *cniwire.AddRequest, err error, unread cause.Code, began time.Time) *cniwire.AddReply {
	var not *unreadError
	if errors.As(err, &not) {
		return b.failPod(req, unread, "Send AddNetworkReply: "+textNoPod, err, b.owner.now().Sub(began))
	}
	return b.failPod(req, cause.LinkConflict, "", err, b.owner.now().Sub(began))
}
