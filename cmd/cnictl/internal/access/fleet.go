package access

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/kube"
)

// Opener opens the nodes.
type Opener func(context.Context, *cli.Factory) (*fleet.Fleet, error)

// Fleet opens the selected nodes, for one reading or several.
func Fleet(ctx context.Context, f *cli.Factory) (*fleet.Fleet, error) { return FleetOf(ctx, f, nil) }

// FleetOf is Fleet for the named nodes. Without names it opens those of --nodes, else all.
func FleetOf(ctx context.Context, f *cli.Factory, names []string) (*fleet.Fleet, error) {
	w, err := Find(ctx, f, names)
	if err != nil {
		return nil, err
	}
	return w.Fleet(ctx)
}

// HasNodes reports whether there is any way to find nodes. It makes no requests.
func HasNodes(ctx context.Context, f *cli.Factory) bool {
	g := &f.Globals
	if f.Recording != nil || len(g.Targets) > 0 || g.Via == cli.ViaLocal || kubeconfig.Given(f) || kubeconfig.InCluster(f) {
		return true
	}
	_, local := f.LocalTarget(ctx)
	return local
}

// ClusterTargets returns the nodes of the cluster as Kubernetes lists them; nil with
// --targets or on this host.
func ClusterTargets(ctx context.Context, f *cli.Factory) ([]fleet.Target, error) {
	w, err := Find(ctx, f, nil)
	if err != nil || w.Cluster == nil {
		return nil, err
	}
	return w.list(ctx)
}

// Kubernetes returns the cluster of the nodes; nil with --targets or on this host.
func Kubernetes(ctx context.Context, f *cli.Factory) (*kube.Cluster, error) {
	w, err := Find(ctx, f, nil)
	return w.Cluster, err
}

// LocalFleet opens this host only, whether or not it looks like a node.
func LocalFleet(ctx context.Context, f *cli.Factory) (*fleet.Fleet, error) {
	local, _ := f.LocalTarget(ctx)
	return Open(f, []fleet.Target{local})
}

// Open opens the given nodes.
func Open(f *cli.Factory, targets []fleet.Target) (*fleet.Fleet, error) {
	nodes, err := fleet.New(fleet.Options{
		Targets: targets, Concurrency: f.Globals.Concurrency, NodeTimeout: f.Globals.NodeTimeout,
		UserAgent: f.UserAgent(), Now: f.Now,
	})
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: "cannot read the nodes", Why: err.Error()}
	}
	return nodes, nil
}
