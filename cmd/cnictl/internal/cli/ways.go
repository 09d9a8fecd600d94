package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/cluster"
)

// way is where the nodes are: one of its members is set.
type way struct {
	targets []fleet.Target   // named, or this host
	cluster *cluster.Cluster // the nodes asked for of it
	title   string           // for people
	asked   []string         // names of the nodes asked for; none: all
}

// way finds the nodes: --targets, else the cluster of the kubeconfig, else this host when
// it is a node, else the cluster that this pod runs in. Of these it is the nodes of the
// names given, else those of --nodes, else all.
func (f *Factory) way(ctx context.Context, names []string) (way, error) {
	w, err := f.wayOf(ctx, f.asked(names))
	w.asked = f.asked(names)
	return w, err
}

// asked are the nodes that a command is asked for: by its arguments, else by --nodes.
func (f *Factory) asked(names []string) []string {
	if len(names) > 0 {
		return names
	}
	return f.Globals.Nodes
}

func (f *Factory) wayOf(ctx context.Context, asked []string) (way, error) {
	if f.recording != nil {
		return f.recorded(asked)
	}
	targets, err := fleet.ParseTargets(f.Globals.Targets)
	if err != nil {
		return way{}, &Error{Code: ExitUsage, What: "--targets is not understood", Why: err.Error(), Do: f.Name + " nodes --targets NAME=unix:/path,NAME=host:port"}
	}
	if len(targets) > 0 {
		return f.named(targets, asked)
	}
	if f.Globals.Via == viaLocal {
		local, _ := f.LocalTarget(ctx)
		return way{targets: []fleet.Target{local}, title: local.Name}, nil
	}
	if !f.hasKubeconfig() {
		local, ok := f.LocalTarget(ctx)
		switch {
		case ok:
			return way{targets: []fleet.Target{local}, title: local.Name}, nil
		case !f.inCluster():
			return way{}, &Error{
				Code: ExitUnreachable,
				What: "no nodes to read",
				Why:  "there is no kubeconfig, --targets is not given, and this host does not look like a node: no /var/run/aws-node and nothing on " + local.Address,
				Do:   "aws eks update-kubeconfig --name CLUSTER; without a cluster: " + f.Name + " status --targets NAME=unix:/path,NAME=host:port; on a node: " + f.Name + " local",
			}
		}
	}
	c, api, err := f.connect(asked)
	if err != nil {
		return way{}, err
	}
	return way{cluster: c, title: api.Title}, nil
}

// named keeps of --targets those asked for.
func (f *Factory) named(targets []fleet.Target, asked []string) (way, error) {
	if f.Globals.Selector != "" {
		return way{}, &Error{Code: ExitUsage, What: "--selector needs the nodes' labels, which --targets does not have", Do: f.Name + " nodes --nodes NAME,NAME"}
	}
	known := namesOf(targets)
	if len(asked) == 0 {
		return way{targets: targets, title: "--targets"}, nil
	}
	whole, err := f.wholeNames(asked, known)
	if err != nil {
		return way{}, err
	}
	targets = slices.DeleteFunc(targets, func(t fleet.Target) bool { return !slices.Contains(whole, t.Name) })
	return way{targets: targets, title: "--targets"}, nil
}

// Fleet is the way to the nodes, for one reading or some.
func (f *Factory) Fleet(ctx context.Context) (*fleet.Fleet, error) { return f.FleetOf(ctx, nil) }

// FleetOf is Fleet for the nodes of these names; none: for those of --nodes, else all.
func (f *Factory) FleetOf(ctx context.Context, names []string) (*fleet.Fleet, error) {
	w, err := f.way(ctx, names)
	if err != nil {
		return nil, err
	}
	if w.cluster != nil {
		if w.targets, err = f.targetsOf(ctx, w); err != nil {
			return nil, err
		}
	}
	return f.open(w.targets)
}

// HasNodes tells whether anything leads to nodes, without asking anybody.
func (f *Factory) HasNodes(ctx context.Context) bool {
	g := &f.Globals
	if f.recording != nil || len(g.Targets) > 0 || g.Via == viaLocal || f.hasKubeconfig() || f.inCluster() {
		return true
	}
	_, local := f.LocalTarget(ctx)
	return local
}

// ClusterTargets are the nodes of the cluster as Kubernetes tells of them; nil where they
// are named by --targets, or are this host.
func (f *Factory) ClusterTargets(ctx context.Context) ([]fleet.Target, error) {
	w, err := f.way(ctx, nil)
	if err != nil || w.cluster == nil {
		return nil, err
	}
	return f.targetsOf(ctx, w)
}

// targetsOf lists the nodes of a cluster.
func (f *Factory) targetsOf(ctx context.Context, w way) ([]fleet.Target, error) {
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	targets, err := w.cluster.Targets(ctx)
	if err != nil {
		return nil, f.ClusterError("list the nodes of "+w.title, err)
	}
	names := namesOf(targets)
	if slices.ContainsFunc(w.asked, func(name string) bool { return !slices.Contains(names, name) }) {
		if targets, err = f.allTargets(ctx, w); err != nil {
			return nil, err
		}
		whole, err := f.wholeNames(w.asked, namesOf(targets))
		if err != nil {
			return nil, err
		}
		targets = slices.DeleteFunc(targets, func(t fleet.Target) bool { return !slices.Contains(whole, t.Name) })
	}
	if len(w.asked) == 0 && f.Globals.Selector == "" {
		f.remember(completion.Names{Nodes: names})
	}
	if len(targets) == 0 {
		return nil, f.noNodes(w.title)
	}
	if !slices.ContainsFunc(targets, hasDaemon) && slices.ContainsFunc(targets, func(t fleet.Target) bool { return fleet.Failed(fleet.Unread(t)) }) {
		f.Warn("no pod in namespace %s has the labels %s: is aws-node installed under other names (--daemonset-namespace, --daemonset-selector)?", f.Globals.DaemonSetNamespace, f.Globals.DaemonSetSelector)
	}
	return targets, nil
}

// allTargets lists the nodes of a cluster whatever was asked for: asked for nodes by name,
// the API server tells of no others.
func (f *Factory) allTargets(ctx context.Context, w way) ([]fleet.Target, error) {
	all, _, err := f.connect(nil)
	if err != nil {
		return nil, err
	}
	targets, err := all.Targets(ctx)
	if err != nil {
		return nil, f.ClusterError("list the nodes of "+w.title, err)
	}
	return targets, nil
}

func namesOf(targets []fleet.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}

// wholeNames are the known names of nodes that were asked for, which may be short.
func (f *Factory) wholeNames(asked, known []string) ([]string, error) {
	whole := make([]string, len(asked))
	for i, name := range asked {
		whole[i] = WholeName(name, known)
		if !slices.Contains(known, whole[i]) {
			return nil, f.NotFound(name, known)
		}
	}
	return whole, nil
}

// WholeName is the known name that a short one, without the domain, stands for: the short
// one itself when none or several begin so.
func WholeName(name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	found := name
	for _, k := range known {
		if IsNamed(k, name) {
			if found != name {
				return name
			}
			found = k
		}
	}
	return found
}

// IsNamed tells whether a node's name is this one, or begins with it before its domain.
func IsNamed(node, name string) bool {
	rest, ok := strings.CutPrefix(node, name)
	return ok && name != "" && (rest == "" || rest[0] == '.')
}

func hasDaemon(t fleet.Target) bool { return t.Object != nil && t.Object.Daemon != nil }

func (f *Factory) noNodes(title string) error {
	e := &Error{Code: ExitNotFound, What: "no nodes in " + title, Why: "its API server lists none", Do: "kubectl get nodes"}
	if f.Globals.Selector != "" {
		e.Why, e.Do = "none has the labels "+f.Globals.Selector, "kubectl get nodes --show-labels"
	}
	return e
}

// LocalFleet is this host alone, whether it looks like a node or not.
func (f *Factory) LocalFleet(ctx context.Context) (*fleet.Fleet, error) {
	local, _ := f.LocalTarget(ctx)
	return f.open([]fleet.Target{local})
}

func (f *Factory) open(targets []fleet.Target) (*fleet.Fleet, error) {
	nodes, err := fleet.New(fleet.Options{
		Targets: targets, Concurrency: f.Globals.Concurrency, NodeTimeout: f.Globals.NodeTimeout,
		UserAgent: f.UserAgent(), Now: f.Now,
	})
	if err != nil {
		return nil, &Error{Code: ExitUsage, What: "the nodes cannot be read", Why: err.Error()}
	}
	return nodes, nil
}

// kubeCacheDir is kubectl's default of --cache-dir.
func (f *Factory) kubeCacheDir() string {
	if dir, _ := f.Env("KUBECACHEDIR"); dir != "" {
		return dir
	}
	home, _ := f.Env("HOME")
	return filepath.Join(home, ".kube", "cache")
}
