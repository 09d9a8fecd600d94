package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/cluster"
	"cnictl/daemon/fleet/watch"
)

// Kubernetes is what commands ask of an API server beside the nodes.
type Kubernetes interface {
	Pods(ctx context.Context, node string) ([]watch.Pod, error)
	Pod(ctx context.Context, namespace, name string) (_ watch.Pod, node string, _ error)
	Events(ctx context.Context, q cluster.EventQuery) ([]cluster.Event, error)
}

// KubernetesOf is the API server that the nodes are of; nil where they are given by
// --targets or are this host.
func KubernetesOf(ctx context.Context, f *cli.Factory) (Kubernetes, error) {
	c, err := f.Kubernetes(ctx)
	if c == nil || err != nil {
		return nil, err
	}
	return c, nil
}
