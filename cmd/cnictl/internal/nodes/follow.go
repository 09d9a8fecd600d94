package nodes

import (
	"context"

	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// follow prints the nodes of a cluster as they come, go and change: they are sampled as the
// screens sample them.
func follow(ctx context.Context, f *cli.Factory, list *cli.List[*store.Node]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	live, err := f.Live(ctx, nil)
	if err != nil {
		return err
	}
	var sampling errgroup.Group
	sampling.Go(func() error { return live.Run(ctx) })
	ticks, stop := f.Tick(f.Globals.Interval)
	defer stop()
	for err == nil && ctx.Err() == nil {
		var told []*store.Node
		var all []string
		for _, n := range live.View().Nodes {
			all = append(all, n.Metadata.Name)
			if n.State != introspect.StateAPIOnly || n.Error != nil { // it was asked
				told = append(told, n)
			}
		}
		live.Focus(watch.Focus{Visible: all})
		if len(told) > 0 {
			err = list.Follow(f, told)
		}
		select {
		case <-ctx.Done():
		case <-ticks:
		case <-first(live.Changed(), len(told) < len(all) || len(all) == 0):
		}
	}
	cancel()
	if ended := sampling.Wait(); err == nil {
		err = ended
	}
	return err
}

// first is a channel while it is wanted: the first rows do not wait for the interval.
func first(changed <-chan struct{}, wanted bool) <-chan struct{} {
	if wanted {
		return changed
	}
	return nil
}
