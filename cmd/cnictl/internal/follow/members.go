package follow

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/kube"
)

// membersTry is the time between two attempts to list the nodes.
const membersTry = 10 * time.Second

// Nodes calls read immediately and then every interval with the current nodes, until ctx ends
// (no error: that is how following ends) or read fails. read returns whether it read an
// upstream node.
func Nodes(ctx context.Context, f *cli.Factory, names []string, read func(context.Context, *fleet.Fleet) (original bool, err error)) error {
	if err := nodesOf(ctx, f, names, read); !cli.Interrupted(ctx, err) {
		return err
	}
	return nil
}

func nodesOf(ctx context.Context, f *cli.Factory, names []string,
	read func(context.Context, *fleet.Fleet) (original bool, err error)) error {
	if f.Recording != nil {
		return NoChange(f)
	}
	w, err := access.Find(ctx, f, names)
	if err != nil {
		return err
	}
	if w.Cluster == nil {
		nodes, err := w.Fleet(ctx)
		if err != nil {
			return err
		}
		defer nodes.Close()
		return Every(ctx, f, f.Globals.Interval, func(ctx context.Context, _ time.Duration) (bool, error) { return read(ctx, nodes) }, nil)
	}
	if w, err = w.Narrowed(ctx); err != nil {
		return err
	}
	if err := w.MayRead(ctx); err != nil {
		return err
	}
	m := members{f: f, listed: make(chan struct{}), targets: map[string]fleet.Target{}}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error { m.watch(ctx, w.Cluster); return nil })
	group.Go(func() error {
		defer cancel()
		select {
		case <-ctx.Done():
			return nil
		case <-m.listed:
		}
		defer m.close()
		return Every(ctx, f, f.Globals.Interval, func(ctx context.Context, _ time.Duration) (bool, error) {
			nodes, err := m.fleet()
			if err != nil {
				return false, err
			}
			return read(ctx, nodes)
		}, nil)
	})
	return group.Wait()
}

// members are the current nodes of a cluster.
type members struct {
	f      *cli.Factory
	listed chan struct{} // closed once all nodes are known

	mu      sync.Mutex // guards targets and news
	targets map[string]fleet.Target
	news    bool // targets changed since nodes was opened

	nodes *fleet.Fleet // used by the reader only; nil until opened
}

// watch keeps the targets current until ctx ends. While listing fails, it warns, and the
// targets stay as they were.
func (m *members) watch(ctx context.Context, c *kube.Cluster) {
	listed := sync.OnceFunc(func() { close(m.listed) })
	for ctx.Err() == nil {
		err := c.Watch(ctx, func(t fleet.Target) { m.change(func() { m.targets[t.Name] = t }) }, listed, func(name string) {
			m.change(func() { delete(m.targets, name) })
		}, m.trouble(ctx))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.trouble(ctx)(err)
		}
		again, stop := m.f.Tick(membersTry)
		select {
		case <-ctx.Done():
		case <-again:
		}
		stop()
	}
}

// trouble returns a function that warns when listing the nodes fails, once until it succeeds
// again.
func (m *members) trouble(ctx context.Context) func(error) {
	said := false
	return func(err error) {
		if err != nil && !said && ctx.Err() == nil {
			m.f.Warn("cannot list nodes; still reading the known ones: %v", err)
		}
		said = err != nil
	}
}

func (m *members) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
	m.news = true
}

// fleet opens the current nodes.
func (m *members) fleet() (*fleet.Fleet, error) {
	m.mu.Lock()
	targets, news := slices.Collect(maps.Values(m.targets)), m.news
	m.news = false
	m.mu.Unlock()
	if !news && m.nodes != nil {
		return m.nodes, nil
	}
	m.close()
	slices.SortFunc(targets, func(a, b fleet.Target) int { return human.Natural(a.Name, b.Name) })
	var err error
	m.nodes, err = access.Open(m.f, targets)
	return m.nodes, err
}

func (m *members) close() {
	if m.nodes != nil {
		m.nodes.Close()
	}
}
