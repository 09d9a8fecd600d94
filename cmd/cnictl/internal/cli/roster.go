package cli

import (
	"context"

	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
)

// Live samples the nodes, as the screens and recordings want them. It does nothing before
// its Run; where nothing could be sampled it is an error.
func (f *Factory) Live(ctx context.Context, change func(*live.Options)) (*live.Live, error) {
	w, err := f.way(ctx, nil)
	if err != nil {
		return nil, err
	}
	return f.live(ctx, w, change)
}

func (f *Factory) live(ctx context.Context, w way, change func(*live.Options)) (*live.Live, error) {
	opts := live.Options{
		Roster: live.Static(w.targets), Store: store.New(), Now: f.Now, Title: w.title, UserAgent: f.UserAgent(),
		Concurrency: f.Globals.Concurrency, NodeTimeout: f.Globals.NodeTimeout, Interval: f.Globals.Interval,
	}
	if w.cluster != nil {
		if err := f.mayRead(ctx, w.cluster, w.title); err != nil {
			return nil, err
		}
		opts.Roster = w.cluster
		opts.Kubernetes = live.Kubernetes{
			Pods: w.cluster.Pods, Events: w.cluster.NodeEvents, ContainerLog: w.cluster.ContainerLog,
			Use: w.cluster.NodeUse, Requests: w.cluster.Requests,
		}
	}
	if change != nil {
		change(&opts)
	}
	l, err := live.New(opts)
	if err != nil {
		return nil, &Error{Code: ExitUsage, What: "the nodes cannot be read", Why: err.Error()}
	}
	return l, nil
}
