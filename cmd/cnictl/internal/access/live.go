package access

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
)

// Live samples the nodes for screens and recordings. It does nothing until Run is called; an
// error means that nothing could be sampled.
func Live(ctx context.Context, f *cli.Factory, change func(*live.Options)) (*live.Live, error) {
	s, err := Find(ctx, f, nil)
	if err == nil && s.Cluster != nil && len(s.asked) > 0 {
		if err = s.MayRead(ctx); err == nil { // this error is more precise than that of the list
			s, err = s.Narrowed(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.Live(ctx, change)
}

// Live is Live for the nodes of this source.
func (s NodeSource) Live(ctx context.Context, change func(*live.Options)) (*live.Live, error) {
	f := s.f
	opts := live.Options{
		Roster: live.Static(s.targets), Store: store.New(), Now: f.Now, Title: s.title, UserAgent: f.UserAgent(),
		Concurrency: f.Globals.Concurrency, NodeTimeout: f.Globals.NodeTimeout, Interval: f.Globals.Interval,
	}
	if s.Cluster != nil {
		if err := s.MayRead(ctx); err != nil {
			return nil, err
		}
		opts.Roster = s.Cluster
		opts.Kubernetes = live.Kubernetes{
			Pods: s.Cluster.Pods, AllPods: s.Cluster.AllPods, Events: s.Cluster.NodeEvents, ContainerLog: s.Cluster.ContainerLog,
			Use: s.Cluster.NodeUse, Answers: s.Cluster.Answers, Requests: s.Cluster.Requests,
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
