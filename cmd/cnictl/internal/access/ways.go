package access

import (
	"context"
	"slices"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/cluster"
)

// Way is where the nodes are: in a cluster, or else they are named, or this host.
type Way struct {
	Cluster *cluster.Cluster // the nodes asked for of it; nil: there is none

	f       *cli.Factory
	targets []fleet.Target // where there is no cluster
	title   string         // for people
	asked   []string       // names of the nodes asked for; none: all
	scope   []string       // of --nodes, where names were asked for too: these must be among them
	local   bool           // it is this host
}

// Find finds the nodes: --targets, else the cluster of the kubeconfig, else this host when
// it is a node, else the cluster that this pod runs in. Of these it is the nodes of the
// names given, which must be among those of --nodes; without names those of --nodes, else all.
func Find(ctx context.Context, f *cli.Factory, names []string) (Way, error) {
	scope := f.Globals.Nodes
	if len(names) == 0 {
		names, scope = scope, nil
	}
	w, err := wayOf(ctx, f, names, scope)
	w.f, w.asked, w.scope = f, names, scope
	return w, err
}

func wayOf(ctx context.Context, f *cli.Factory, asked, scope []string) (Way, error) {
	if f.Recording != nil {
		return recorded(f, asked, scope)
	}
	targets, err := fleet.ParseTargets(f.Globals.Targets)
	if err != nil {
		return Way{}, &cli.Error{Code: cli.ExitUsage, What: "invalid --targets", Why: err.Error(), Do: f.Name + " nodes --targets NAME=unix:/path,NAME=host:port"}
	}
	if len(targets) > 0 {
		return named(f, targets, asked, scope)
	}
	if f.Globals.Via == cli.ViaLocal {
		return localOf(ctx, f, asked, scope)
	}
	if !kubeconfig.Given(f) {
		local, ok := f.LocalTarget(ctx)
		switch {
		case ok:
			return localOf(ctx, f, asked, scope)
		case !kubeconfig.InCluster(f):
			return Way{}, &cli.Error{
				Code: cli.ExitUnreachable,
				What: "no nodes to read",
				Why:  "there is no kubeconfig, --targets is not given, and this host does not look like a node: /var/run/aws-node does not exist and nothing listens on " + local.Address,
				Do:   "aws eks update-kubeconfig --name CLUSTER; without a cluster: " + f.Name + " status --targets NAME=unix:/path,NAME=host:port; on a node: " + f.Name + " local",
			}
		}
	}
	c, api, err := connect(f, bareNames(asked))
	if err != nil {
		return Way{}, err
	}
	return Way{Cluster: c, title: api.Title}, nil
}

// named keeps of --targets those asked for.
func named(f *cli.Factory, targets []fleet.Target, asked, scope []string) (Way, error) {
	if f.Globals.Selector != "" {
		return Way{}, &cli.Error{Code: cli.ExitUsage, What: "--selector needs the nodes' labels, which --targets does not have", Do: f.Name + " nodes --nodes NAME,NAME"}
	}
	targets, err := among(f, targets, asked, scope)
	return Way{targets: targets, title: "--targets"}, err
}

// localOf is this host, where it is what was asked for.
func localOf(ctx context.Context, f *cli.Factory, asked, scope []string) (Way, error) {
	local, _ := f.LocalTarget(ctx)
	targets, err := among(f, []fleet.Target{local}, asked, scope)
	return Way{targets: targets, title: local.Name, local: true}, err
}

// Title is what the nodes are of, for people.
func (w Way) Title() string { return w.title }

// list lists the nodes of a cluster.
func (w Way) list(ctx context.Context) ([]fleet.Target, error) {
	f := w.f
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	targets, err := w.Cluster.Targets(ctx)
	if err != nil {
		return nil, ClusterError(f, "list the nodes of "+w.title, err)
	}
	names := namesOf(targets)
	if len(w.asked) > 0 && !w.whole(names) {
		if targets, err = w.all(ctx); err != nil {
			return nil, err
		}
		if targets, err = among(f, targets, w.asked, w.scope); err != nil {
			return nil, err
		}
	}
	if len(w.asked) == 0 && f.Globals.Selector == "" {
		completion.Remember(f, completion.Names{Nodes: names})
	}
	if len(targets) == 0 {
		return nil, noNodes(f, w.title)
	}
	if !slices.ContainsFunc(targets, hasDaemon) && slices.ContainsFunc(targets, func(t fleet.Target) bool { return fleet.Failed(fleet.Unread(t)) }) {
		f.Warn("no pod in namespace %s has the labels %s: is aws-node installed under other names (--daemonset-namespace, --daemonset-selector)?", f.Globals.DaemonSetNamespace, f.Globals.DaemonSetSelector)
	}
	return targets, nil
}

// whole reports whether the nodes asked for are all among these by the names they were asked
// for, and so among those of --nodes.
func (w Way) whole(names []string) bool {
	scope := bareNames(w.scope)
	for _, name := range bareNames(w.asked) {
		if !slices.Contains(names, name) || len(scope) > 0 && !slices.Contains(scope, name) {
			return false
		}
	}
	return true
}

// all lists the nodes of a cluster whatever was asked for: asked for nodes by name, the API
// server tells of no others.
func (w Way) all(ctx context.Context) ([]fleet.Target, error) {
	all, _, err := connect(w.f, nil)
	if err != nil {
		return nil, err
	}
	targets, err := all.Targets(ctx)
	if err != nil {
		return nil, ClusterError(w.f, "list the nodes of "+w.title, err)
	}
	return targets, nil
}

func hasDaemon(t fleet.Target) bool { return t.Object != nil && t.Object.Daemon != nil }

// Narrowed puts whole names in place of those that nodes were asked for by: they may be
// short, or wrong.
func (w Way) Narrowed(ctx context.Context) (Way, error) {
	if len(w.asked) == 0 {
		return w, nil
	}
	targets, err := w.list(ctx)
	if err != nil {
		return w, err
	}
	w.asked, w.scope = namesOf(targets), nil
	w.Cluster, _, err = connect(w.f, w.asked)
	return w, err
}

// Targets are the nodes that there are now.
func (w Way) Targets(ctx context.Context) ([]fleet.Target, error) {
	if w.Cluster == nil {
		return w.targets, nil
	}
	return w.list(ctx)
}

// Fleet is the way to the nodes that there are now.
func (w Way) Fleet(ctx context.Context) (*fleet.Fleet, error) {
	targets, err := w.Targets(ctx)
	if err != nil {
		return nil, err
	}
	return Open(w.f, targets)
}

// IsLocal reports that this host alone is looked at, for want of anything else.
func (w Way) IsLocal() bool { return w.Cluster == nil && w.local }
