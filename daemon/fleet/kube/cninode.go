package kube

import (
	"context"
	"errors"
	"sync"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/watch"
)

// CNINode is what is used from a CNINode object.
type CNINode = watch.CNINode

// Feature of a CNINode.
type Feature = watch.CNINodeFeature

// CNINode reads the CNINode of a node; ok is false if it has none or the cluster has no such
// kind.
func (c *Cluster) CNINode(ctx context.Context, node string) (_ CNINode, ok bool, _ error) {
	raw, err := c.object(ctx, KindCNINodes, "", node)
	var e *Error
	if errors.As(err, &e) && e.Reason == introspect.ReasonNotFound {
		return CNINode{}, false, nil
	}
	if err != nil {
		return CNINode{}, false, err
	}
	own, _, err := readCNINode(raw)
	if err != nil {
		return CNINode{}, false, err
	}
	out := CNINode{Name: node, Features: []Feature{}}
	for _, f := range own.Features {
		out.Features = append(out.Features, Feature(f))
	}
	return out, true, nil
}

// NodeUse returns what Kubernetes knows about the usage of a node: from the pods on it, which it
// must be able to list, and from its CNINode if that is readable.
func (c *Cluster) NodeUse(ctx context.Context, node string) (watch.NodeUse, error) {
	var pods []Pod
	var own CNINode
	var ok bool
	var podsErr, ownErr error
	var wait sync.WaitGroup
	wait.Go(func() { pods, podsErr = c.Pods(ctx, node) })
	wait.Go(func() { own, ok, ownErr = c.CNINode(ctx, node) })
	wait.Wait()
	if podsErr != nil {
		return watch.NodeUse{}, podsErr
	}
	out := useOf(pods)
	switch {
	case ownErr != nil:
		out.CNINodeError = fleet.ErrorOf(ownErr)
	case ok:
		out.CNINode = &own
	}
	return out, nil
}

// useOf counts pods. A pod that has ended has released its address.
func useOf(pods []Pod) (u watch.NodeUse) {
	for _, p := range pods {
		if p.Phase == "Succeeded" || p.Phase == "Failed" {
			continue
		}
		u.Pods++
		if p.HostNetwork {
			continue
		}
		u.Network++
		if p.Wants {
			u.Branch++
		}
		if len(p.IPs) == 0 {
			u.Waiting++
		}
	}
	return u
}
