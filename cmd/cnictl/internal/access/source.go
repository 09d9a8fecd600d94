package access

import (
	"context"
	"slices"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/kube"
)

// NodeSource is where the nodes are: in a cluster, named by --targets, or this host.
type NodeSource struct {
	Cluster *kube.Cluster // of the requested nodes; nil if none

	f       *cli.Factory
	targets []fleet.Target // if there is no cluster
	title   string         // for display
	asked   []string       // requested names; none: all
	scope   []string       // names of --nodes, if others were requested too: those must be among these
	local   bool           // this host is the only node
}

// Find finds the nodes: --targets, else the cluster of the kubeconfig, else this host if it
// is a node, else the cluster that this pod runs in. Names select some of the nodes and must
// be among those of --nodes. Without names, --nodes selects, else all nodes are used.
func Find(ctx context.Context, f *cli.Factory, names []string) (NodeSource, error) {
	scope := f.Globals.Nodes
	if len(names) == 0 {
		names, scope = scope, nil
	}
	s, err := sourceOf(ctx, f, names, scope)
	s.f, s.asked, s.scope = f, names, scope
	return s, err
}

func sourceOf(ctx context.Context, f *cli.Factory, asked, scope []string) (NodeSource, error) {
	if f.Recording != nil {
		return recorded(f, asked, scope)
	}
	targets, err := fleet.ParseTargets(f.Globals.Targets)
	if err != nil {
		return NodeSource{},
			&cli.Error{Code: cli.ExitUsage, What: "invalid --targets", Why: err.Error(),
				Do: f.Name + " nodes --targets NAME=unix:/path,NAME=host:port"}
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
			return NodeSource{}, &cli.Error{
				Code: cli.ExitUnreachable,
				What: "no nodes to read",
				Why:  "there is no kubeconfig, --targets is not given, and this host does not look like a node: /var/run/aws-node does not exist and nothing listens on " + local.Address,
				Do: "aws eks update-kubeconfig --name CLUSTER; without a cluster: " + f.Name +
					" status --targets NAME=unix:/path,NAME=host:port; on a node: " + f.Name + " local",
			}
		}
	}
	c, api, err := connect(f, bareNames(asked))
	if err != nil {
		return NodeSource{}, err
	}
	return NodeSource{Cluster: c, title: api.Title}, nil
}

// named keeps the requested nodes of --targets.
func named(f *cli.Factory, targets []fleet.Target, asked, scope []string) (NodeSource, error) {
	if f.Globals.Selector != "" {
		return NodeSource{}, &cli.Error{Code: cli.ExitUsage, What: "--selector needs the nodes' labels, which --targets does not have",
			Do: f.Name + " nodes --nodes NAME,NAME"}
	}
	targets, err := selectTargets(f, targets, asked, scope)
	return NodeSource{targets: targets, title: "--targets"}, err
}

// localOf returns this host, if it was requested.
func localOf(ctx context.Context, f *cli.Factory, asked, scope []string) (NodeSource, error) {
	local, _ := f.LocalTarget(ctx)
	targets, err := selectTargets(f, []fleet.Target{local}, asked, scope)
	return NodeSource{targets: targets, title: local.Name, local: true}, err
}

// Title is the display name of the source.
func (s NodeSource) Title() string { return s.title }

// list lists the nodes of a cluster.
func (s NodeSource) list(ctx context.Context) ([]fleet.Target, error) {
	f := s.f
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	targets, err := s.Cluster.Targets(ctx)
	if err != nil {
		return nil, ClusterError(f, "list the nodes of "+s.title, err)
	}
	names := namesOf(targets)
	if len(s.asked) > 0 && !s.complete(names) {
		if targets, err = s.all(ctx); err != nil {
			return nil, err
		}
		if targets, err = selectTargets(f, targets, s.asked, s.scope); err != nil {
			return nil, err
		}
	}
	if len(s.asked) == 0 && f.Globals.Selector == "" {
		completion.Remember(f, completion.Names{Nodes: names})
	}
	if len(targets) == 0 {
		return nil, noNodes(f, s.title)
	}
	if !slices.ContainsFunc(targets, hasDaemon) &&
		slices.ContainsFunc(targets, func(t fleet.Target) bool { return fleet.Failed(fleet.Unread(t)) }) {
		f.Warn("no pod in namespace %s has the labels %s: is aws-node installed under other names (--daemonset-namespace, --daemonset-selector)?",
			f.Globals.DaemonSetNamespace, f.Globals.DaemonSetSelector)
	}
	return targets, nil
}

// complete reports whether names has every requested name exactly, and all are within
// --nodes.
func (s NodeSource) complete(names []string) bool {
	scope := bareNames(s.scope)
	for _, name := range bareNames(s.asked) {
		if !slices.Contains(names, name) || len(scope) > 0 && !slices.Contains(scope, name) {
			return false
		}
	}
	return true
}

// all lists all nodes of the cluster: listing by name finds exact names only.
func (s NodeSource) all(ctx context.Context) ([]fleet.Target, error) {
	all, _, err := connect(s.f, nil)
	if err != nil {
		return nil, err
	}
	targets, err := all.Targets(ctx)
	if err != nil {
		return nil, ClusterError(s.f, "list the nodes of "+s.title, err)
	}
	return targets, nil
}

func hasDaemon(t fleet.Target) bool { return t.Object != nil && t.Object.Daemon != nil }

// Narrowed replaces the requested names, which may be short or wrong, with full names.
func (s NodeSource) Narrowed(ctx context.Context) (NodeSource, error) {
	if len(s.asked) == 0 {
		return s, nil
	}
	targets, err := s.list(ctx)
	if err != nil {
		return s, err
	}
	s.asked, s.scope = namesOf(targets), nil
	s.Cluster, _, err = connect(s.f, s.asked)
	return s, err
}

// Targets returns the current nodes.
func (s NodeSource) Targets(ctx context.Context) ([]fleet.Target, error) {
	if s.Cluster == nil {
		return s.targets, nil
	}
	return s.list(ctx)
}

// Fleet opens the current nodes.
func (s NodeSource) Fleet(ctx context.Context) (*fleet.Fleet, error) {
	targets, err := s.Targets(ctx)
	if err != nil {
		return nil, err
	}
	return Open(s.f, targets)
}

// IsLocal reports whether this host is the only node, because there is no other source.
func (s NodeSource) IsLocal() bool { return s.Cluster == nil && s.local }
