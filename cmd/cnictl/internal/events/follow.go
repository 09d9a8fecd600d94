package events

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
)

// follow prints events as they arrive, until ctx ends. It watches the events of Kubernetes,
// and reads those of the daemons every interval.
func (o *options) follow(ctx context.Context, f *cli.Factory, _ []string) error {
	c, err := access.Kubernetes(ctx, f)
	if err != nil {
		return err
	}
	if f.Recording != nil {
		return follow.NoChange(f)
	}
	of, err := selected(ctx, f, o, c)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	come := feed{of: of, signal: make(chan struct{}, 1)}
	if c != nil {
		group.Go(func() error { return watchKubernetes(ctx, f, o, c, &come) })
	}
	asked := o.Daemon || c == nil
	if asked || f.Globals.Selector != "" { // nodes that gain the labels later are selected then
		r := newReader(f, o, nil)
		group.Go(func() error {
			return follow.Nodes(ctx, f, o.Names, func(ctx context.Context, nodes *fleet.Fleet) (bool, error) {
				come.selects(nodes)
				if !asked {
					return false, nil
				}
				r.nodes, r.names = nodes, nodes.Names()
				rows, _, err := r.read(ctx)
				if ctx.Err() == nil {
					come.add(rows...)
				}
				return false, err
			})
		})
	}
	group.Go(func() error {
		defer cancel()
		return come.print(ctx, f, o)
	})
	return group.Wait()
}

// watchKubernetes feeds Kubernetes events until ctx ends.
func watchKubernetes(ctx context.Context, f *cli.Factory, opts *options, c *kube.Cluster, come *feed) error {
	q := kube.EventQuery{Namespace: f.Globals.Kube.Namespace}
	switch now := f.Now(); {
	case opts.list.WatchOnly:
		q.Since = now
	case opts.Since > 0:
		q.Since = now.Add(-opts.Since)
	}
	err := c.WatchEvents(ctx, q, func(e kube.Event) {
		if row := inventory.KubernetesEvent(e, f.Now()); row.Warning || !opts.Warnings {
			come.add(row)
		}
	}, func(trouble error) {
		if trouble != nil && ctx.Err() == nil {
			f.Warn("%v", access.ClusterError(f, "watch events", trouble))
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return access.ClusterError(f, "watch events", err)
}

// gathered is how long events are collected before they are printed in order: at the start,
// the existing events arrive one by one.
const gathered = 100 * time.Millisecond

// maxWaiting bounds the events that wait for their nodes to be selected: kubelet reports pods
// of a node before the node is listed.
const maxWaiting = 1000

// feed merges events of several sources for one printer.
type feed struct {
	of     *selection
	signal chan struct{}

	mu   sync.Mutex // guards rows
	rows []row
}

func (e *feed) add(rows ...row) {
	if len(rows) == 0 {
		return
	}
	e.mu.Lock()
	e.rows = append(e.rows, rows...)
	e.mu.Unlock()
	e.wake()
}

// selects adds these nodes to the selection; their earlier events are printed too.
func (e *feed) selects(nodes *fleet.Fleet) {
	e.of.add(nodes)
	e.wake()
}

func (e *feed) wake() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// take removes and returns the events of selected nodes; the others keep waiting.
func (e *feed) take() (rows []row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var waiting []row
	for _, row := range e.rows {
		if e.of.wants(row.Node) {
			rows = append(rows, row)
		} else {
			waiting = append(waiting, row)
		}
	}
	e.rows = waiting[max(0, len(waiting)-maxWaiting):]
	return rows
}

// print prints events as they arrive, until ctx ends.
func (e *feed) print(ctx context.Context, f *cli.Factory, opts *options) error {
	if opts.list.WatchOnly { // existing events do not get here
		if err := opts.list.Follow(f, nil); err != nil {
			return err
		}
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.signal:
		}
		pause.Reset(gathered)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		rows := e.take()
		inventory.MergeEvents(rows)
		if err := opts.list.Follow(f, rows); err != nil {
			return err
		}
	}
}
