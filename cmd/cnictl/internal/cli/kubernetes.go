package cli

import (
	"context"

	"cnictl/daemon/fleet/cluster"
)

// Kubernetes is the cluster that the nodes are of; nil where they are named by --targets,
// or are this host.
func (f *Factory) Kubernetes(ctx context.Context) (*cluster.Cluster, error) {
	w, err := f.way(ctx, nil)
	return w.cluster, err
}
