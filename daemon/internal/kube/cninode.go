package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cnictl/daemon/cluster"
)

// Attempts at a write that conflicts with others, and the pause before the second one; it
// grows fivefold, as client-go's retry.DefaultBackoff does.
const (
	writeAttempts   = 4
	conflictPause   = 10 * time.Millisecond
	conflictPauseUp = 5
)

// CNINode returns the node's CNINode.
func (c *Client) CNINode(ctx context.Context) (cluster.CNINode, error) {
	if n, ok, _ := c.cniNodes.get(c.opts.NodeName); ok {
		return n.node, nil
	}
	n, err := c.getCNINode(ctx)
	return n.node, err
}

func (c *Client) getCNINode(ctx context.Context) (cniNode, error) {
	name := c.opts.NodeName
	if name == "" {
		return cniNode{}, errors.New("get CNINode: MY_NODE_NAME is not set")
	}
	raw, err := c.getObject(ctx, cniNodes, "", name)
	if errors.Is(err, ErrNotFound) {
		return cniNode{}, fmt.Errorf("%w; the VPC resource controller creates it for nodes that it manages", err)
	}
	if err != nil {
		return cniNode{}, err
	}
	n, err := parseCNINode(raw)
	if err != nil {
		return cniNode{}, fmt.Errorf("read CNINode %s: %w", name, err)
	}
	return n, nil
}

// AddFeatures makes sure that the node's CNINode has these features, and writes nothing if
// it does. The list is written as a whole, so it must be based on the API server's current
// one: after a conflict with another writer, it is read and written again.
func (c *Client) AddFeatures(ctx context.Context, want ...cluster.Feature) error {
	// The cache is good enough for the first attempt: a stale one causes a conflict.
	n, cached, _ := c.cniNodes.get(c.opts.NodeName)
	return c.retryOnConflict(ctx, func() error {
		if !cached {
			var err error
			if n, err = c.getCNINode(ctx); err != nil {
				return err
			}
		}
		cached = false
		features, changed := cluster.AddFeature(n.node.Features, want...)
		if !changed {
			return nil
		}
		return c.patchFeatures(ctx, n.version, features)
	})
}

func (c *Client) patchFeatures(ctx context.Context, version string, features []cluster.Feature) error {
	path, err := cniNodes.object("", c.opts.NodeName)
	if err != nil {
		return err
	}
	list := make([]featureObject, len(features))
	for i, f := range features {
		list[i] = featureObject(f)
	}
	err = c.patch(ctx, path, map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"spec":     map[string]any{"features": list},
	})
	if err != nil {
		return fmt.Errorf("patch CNINode %s: %w", c.opts.NodeName, err)
	}
	return nil
}

// retryOnConflict retries a write that conflicts with another one, writeAttempts in all.
func (c *Client) retryOnConflict(ctx context.Context, write func() error) error {
	pause := conflictPause
	for attempt := 1; ; attempt++ {
		err := write()
		if !apierrors.IsConflict(err) || attempt == writeAttempts {
			return err
		}
		if !sleep(ctx, pause+c.pauses.Jittered(pause)) {
			return err
		}
		pause *= conflictPauseUp
	}
}
