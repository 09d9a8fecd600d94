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
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Options describe how a command shows a fleet while it changes. Show is required.
//
// The nodes of a cluster are its current ones: they come and go, and are sampled as the
// screens do it, with one list of each kind and watches. The nodes of --targets, and this
// host, are read again every --interval.
type Options struct {
	Names []string      // of nodes; none: all
	Open  access.Opener // opens a fixed set of nodes; nil: the default set, or a cluster
	ENIs  bool          // with the addresses of each node
	// Histories adds the free counts of subnets that nodes kept before.
	Histories bool
	Whole     bool // call Show only once all nodes were asked or an interval has passed
	Order     bool // call Show only once all nodes were asked: its first output is sorted
	Show      func(Moment) error
	// Redraw is called when the terminal's size or the interval changed; nil if nothing needs
	// redrawing.
	Redraw func(every time.Duration) error
}

// Moment is the state at one time.
type Moment struct {
	View  *store.View
	Fresh []document.NodeIPAM // nodes read since the last Moment, by name
	Gone  []string            // nodes that left the cluster since the last Moment
	Back  []string            // nodes that left and came back since
	Every time.Duration       // interval between readings
	Now   time.Time
}

// List returns all nodes as if from one reading.
func (w Moment) List() document.NodeIPAMList {
	items := make([]document.NodeIPAM, len(w.View.Nodes))
	for i, n := range w.View.Nodes {
		items[i] = n.NodeIPAM
	}
	return fleet.ListOf(items, w.Now)
}

// Fleet shows a fleet until ctx ends, which is no error: that is how watching ends.
func Fleet(ctx context.Context, f *cli.Factory, o Options) error {
	if err := fleetOf(ctx, f, o); !cli.Interrupted(ctx, err) {
		return err
	}
	return nil
}

func fleetOf(ctx context.Context, f *cli.Factory, o Options) error {
	if f.Recording != nil {
		return NoChange(f)
	}
	if o.Open == nil {
		w, err := access.Find(ctx, f, o.Names)
		if err != nil {
			return err
		}
		if w.Cluster != nil {
			return clusterOf(ctx, f, w, o)
		}
		o.Open = func(ctx context.Context, _ *cli.Factory) (*fleet.Fleet, error) { return w.Fleet(ctx) }
	}
	nodes, err := o.Open(ctx, f)
	if err != nil {
		return err
	}
	defer nodes.Close()
	known, earlier := store.New(), o.Histories
	return Every(ctx, f, f.Globals.Interval, func(ctx context.Context, every time.Duration) (bool, error) {
		list := nodes.Sweep(ctx, fleet.Query{ENIs: o.ENIs})
		if ctx.Err() != nil {
			return false, nil // half a sweep would show nodes as lost
		}
		for _, n := range list.Items {
			known.Put(n)
		}
		if earlier {
			earlier = false
			known.Precede(sweep.Histories(ctx, nodes, known.View()))
		}
		v := known.View()
		return HasUpstream(v), o.Show(Moment{View: v, Fresh: list.Items, Every: every, Now: f.Now()})
	}, o.Redraw)
}

// NoChange is the error for watching a recording.
func NoChange(f *cli.Factory) error {
	return &cli.Error{Code: cli.ExitUsage, What: "--watch cannot be used with --replay: a recording does not change",
		Do: f.Name + " replay " + f.Globals.Replay}
}

// clusterOf shows the nodes of a cluster.
func clusterOf(ctx context.Context, f *cli.Factory, w access.NodeSource, o Options) error {
	w, err := w.Narrowed(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var news news
	l, err := w.Live(ctx, func(opts *live.Options) {
		opts.Background, opts.ENIs, opts.Histories = f.Globals.Interval, o.ENIs, o.Histories
		opts.Sampled, opts.Removed = news.sampled, news.removed
	})
	if err != nil {
		return err
	}
	var sampling errgroup.Group
	sampling.Go(func() error { return l.Run(ctx) })
	err = showLive(ctx, f, l, &news, o)
	cancel()
	if ended := sampling.Wait(); err == nil {
		err = ended
	}
	return err
}

// showLive shows changes: as they arrive at first, then every interval.
func showLive(ctx context.Context, f *cli.Factory, l *live.Live, news *news, o Options) error {
	ticks, stop := f.Tick(f.Globals.Interval)
	defer stop()
	coming, gentle := l.Changed(), false
	var last watch.Stats
	for {
		tick := false
		select {
		case <-ctx.Done():
			return nil
		case <-coming:
		case <-ticks:
			tick = true
		case <-f.Streams.Resized:
			if o.Redraw != nil {
				if err := o.Redraw(f.Globals.Interval); err != nil {
					return err
				}
			}
			continue
		}
		stats, view := l.Stats(), l.View()
		switch {
		case stats.Outage() && !last.Outage():
			f.Warn("%s; retrying", stats.Problem)
		case !stats.Outage() && stats.Problem != "" && stats.Problem != last.Problem:
			f.Warn("%s", stats.Problem)
		}
		if last = stats; stats.Swept && (!o.Order || allRead(view)) {
			coming = nil
		}
		if len(view.Nodes) == 0 && !news.any() || o.Order && !(stats.Swept && allRead(view)) || o.Whole && !tick && !stats.Swept {
			continue
		}
		if !gentle && o.Redraw == nil && f.Globals.Interval < UpstreamInterval && HasUpstream(view) {
			gentle = true
			f.Warn("some nodes run the upstream daemon, which logs every request: they are read every %s", UpstreamInterval)
		}
		fresh, gone, back := news.take()
		if err := o.Show(Moment{View: view, Fresh: fresh, Gone: gone, Back: back, Every: f.Globals.Interval, Now: f.Now()}); err != nil {
			return err
		}
	}
}

// allRead reports whether every node of a view has answered or failed. When no node is left
// to ask, the last answers may still be outstanding.
func allRead(v *store.View) bool {
	return !slices.ContainsFunc(v.Nodes, func(n *store.Node) bool { return n.State == document.StateAPIOnly && n.Error == nil })
}

// news holds the samples that were not shown yet, the newest of each node.
type news struct {
	mu   sync.Mutex // guards all below
	read map[string]document.NodeIPAM
	gone map[string]bool
	back map[string]bool // gone, and read since
}

func (n *news) sampled(sample document.NodeIPAM) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.read == nil {
		n.read, n.gone, n.back = map[string]document.NodeIPAM{}, map[string]bool{}, map[string]bool{}
	}
	n.read[sample.Metadata.Name] = sample
	if name := sample.Metadata.Name; n.gone[name] {
		delete(n.gone, name)
		n.back[name] = true
	}
}

func (n *news) removed(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.read != nil {
		delete(n.read, name)
		delete(n.back, name)
		n.gone[name] = true
	}
}

// any reports whether there is something to take.
func (n *news) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.read)+len(n.gone) > 0
}

// take empties the news.
func (n *news) take() (fresh []document.NodeIPAM, gone, back []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh, gone, back = slices.Collect(maps.Values(n.read)), slices.Sorted(maps.Keys(n.gone)), slices.Sorted(maps.Keys(n.back))
	slices.SortFunc(fresh, func(a, b document.NodeIPAM) int { return human.Natural(a.Metadata.Name, b.Metadata.Name) })
	clear(n.read)
	clear(n.gone)
	clear(n.back)
	return fresh, gone, back
}

// Rows prints the rows of newly read nodes, until ctx ends.
func Rows[T any](ctx context.Context, f *cli.Factory, names []string, list *output.List[T], rows func([]document.NodeIPAM) []T) error {
	return Fleet(ctx, f, Options{Names: names, ENIs: true, Order: list.Ordered(), Show: func(now Moment) error {
		Left(f, now.Gone)
		list.Forget(slices.Concat(now.Gone, now.Back))
		return list.Follow(f, rows(now.Fresh))
	}})
}

// Left warns about nodes that left the cluster: their rows are no longer printed.
func Left(f *cli.Factory, nodes []string) {
	for _, name := range nodes {
		f.Warn("node %s left the cluster", name)
	}
}
