package access

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
)

// Live samples the nodes, as the screens and recordings want them. It does nothing before
// its Run; where nothing could be sampled it is an error.
func Live(ctx context.Context, f *cli.Factory, change func(*live.Options)) (*live.Live, error) {
	w, err := Find(ctx, f, nil)
	if err == nil && w.Cluster != nil && len(w.asked) > 0 {
		if err = w.MayRead(ctx); err == nil { // it says more of what is missing than the list
			w, err = w.Narrowed(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return w.Live(ctx, change)
}

// Live is Live for the nodes of this way.
func (w Way) Live(ctx context.Context, change func(*live.Options)) (*live.Live, error) {
	f := w.f
	opts := live.Options{
		Roster: live.Static(w.targets), Store: store.New(), Now: f.Now, Title: w.title, UserAgent: f.UserAgent(),
		Concurrency: f.Globals.Concurrency, NodeTimeout: f.Globals.NodeTimeout, Interval: f.Globals.Interval,
	}
	if w.Cluster != nil {
		if err := w.MayRead(ctx); err != nil {
			return nil, err
		}
		opts.Roster = w.Cluster
		opts.Kubernetes = live.Kubernetes{
			Pods: w.Cluster.Pods, AllPods: w.Cluster.AllPods, Events: w.Cluster.NodeEvents, ContainerLog: w.Cluster.ContainerLog,
			Use: w.Cluster.NodeUse, Answers: w.Cluster.Answers, Requests: w.Cluster.Requests,
		}
	}
	if change != nil {
		change(&opts)
	}
	l, err := live.New(opts)
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: "cannot read the nodes", Why: err.Error()}
	}
	return l, nil
}
