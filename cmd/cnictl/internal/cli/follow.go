package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
)

// Follow is a fleet that a command shows while it changes. Show is required.
//
// The nodes of a cluster are those that there are at the time: they come and go, and are
// sampled as the screens sample them, with one list of each kind and watches. Nodes that
// were named by --targets, and this host, are read anew every --interval.
type Follow struct {
	Names []string                                    // of nodes; none: all
	Open  func(context.Context) (*fleet.Fleet, error) // the way to nodes that do not change; nil: the usual one, or a cluster
	ENIs  bool                                        // with the addresses of each node
	Whole bool                                        // Show is not called before all nodes were asked, or an interval is over
	Show  func(Following) error
	// Redraw is called when the terminal changed its size, or the interval did; nil: nobody
	// draws.
	Redraw func(every time.Duration) error
}

// Following is what is known at one time.
type Following struct {
	View  *store.View
	Fresh []introspect.NodeIPAM // read since the time before, by name
	Gone  []string              // nodes that left the cluster since
	Every time.Duration         // between two readings
	Now   time.Time
}

// List are all nodes as one reading of them.
func (w Following) List() introspect.NodeIPAMList {
	items := make([]introspect.NodeIPAM, len(w.View.Nodes))
	for i, n := range w.View.Nodes {
		items[i] = n.NodeIPAM
	}
	return fleet.ListOf(items, w.Now)
}

// Follow shows a fleet until ctx ends, which is no error: that is how watching ends.
func (f *Factory) Follow(ctx context.Context, o Follow) error {
	if err := f.follow(ctx, o); !GivenUp(ctx, err) {
		return err
	}
	return nil
}

func (f *Factory) follow(ctx context.Context, o Follow) error {
	if f.recording != nil {
		return f.NoChange()
	}
	if o.Open == nil {
		w, err := f.way(ctx, o.Names)
		if err != nil {
			return err
		}
		if w.cluster != nil {
			return f.followCluster(ctx, w, o)
		}
		o.Open = func(context.Context) (*fleet.Fleet, error) { return f.open(w.targets) }
	}
	nodes, err := o.Open(ctx)
	if err != nil {
		return err
	}
	defer nodes.Close()
	known := store.New()
	return f.watch(ctx, func(ctx context.Context, every time.Duration) (bool, error) {
		list := nodes.Sweep(ctx, fleet.Query{ENIs: o.ENIs})
		if ctx.Err() != nil {
			return false, nil // half a sweep would show nodes as lost
		}
		for _, n := range list.Items {
			known.Put(n)
		}
		return HasOriginal(list), o.Show(Following{View: known.View(), Fresh: list.Items, Every: every, Now: f.Now()})
	}, o.Redraw)
}

// NoChange refuses to watch a recording.
func (f *Factory) NoChange() error {
	return &Error{Code: ExitUsage, What: "a recording does not change: --watch and --replay exclude each other", Do: f.Name + " replay " + f.Globals.Replay}
}

// followCluster shows the nodes of a cluster.
func (f *Factory) followCluster(ctx context.Context, w way, o Follow) error {
	w, err := f.narrowed(ctx, w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var news news
	l, err := f.live(ctx, w, func(opts *live.Options) {
		opts.Background, opts.ENIs = f.Globals.Interval, o.ENIs
		opts.Sampled, opts.Removed = news.sampled, news.removed
	})
	if err != nil {
		return err
	}
	var sampling errgroup.Group
	sampling.Go(func() error { return l.Run(ctx) })
	err = f.showLive(ctx, l, &news, o)
	cancel()
	if ended := sampling.Wait(); err == nil {
		err = ended
	}
	return err
}

// showLive shows what changes: at first as it comes, then every interval.
func (f *Factory) showLive(ctx context.Context, l *live.Live, news *news, o Follow) error {
	ticks, stop := f.Tick(f.Globals.Interval)
	defer stop()
	coming, trouble, gentle := l.Changed(), "", false
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
		if stats.Problem != "" && stats.Problem != trouble {
			f.Warn("%s", stats.Problem)
		}
		if trouble = stats.Problem; stats.Swept {
			coming = nil
		}
		if len(view.Nodes) == 0 && !news.any() || o.Whole && !tick && !stats.Swept {
			continue
		}
		if !gentle && o.Redraw == nil && f.Globals.Interval < originalInterval && slices.ContainsFunc(view.Nodes, isOriginal) {
			gentle = true
			f.Warn("some nodes run the original daemon, which logs every request: these are read every %s", originalInterval)
		}
		fresh, gone := news.take()
		if err := o.Show(Following{View: view, Fresh: fresh, Gone: gone, Every: f.Globals.Interval, Now: f.Now()}); err != nil {
			return err
		}
	}
}

func isOriginal(n *store.Node) bool { return n.Source == introspect.SourceV1 }

// news are the samples that were not shown yet, the newest of each node.
type news struct {
	mu   sync.Mutex // guards all below
	read map[string]introspect.NodeIPAM
	gone map[string]bool
}

func (n *news) sampled(sample introspect.NodeIPAM) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.read == nil {
		n.read, n.gone = map[string]introspect.NodeIPAM{}, map[string]bool{}
	}
	n.read[sample.Metadata.Name] = sample
	delete(n.gone, sample.Metadata.Name)
}

func (n *news) removed(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.read != nil {
		delete(n.read, name)
		n.gone[name] = true
	}
}

// any tells that there is something to take.
func (n *news) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.read)+len(n.gone) > 0
}

// take empties the news.
func (n *news) take() (fresh []introspect.NodeIPAM, gone []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh, gone = slices.Collect(maps.Values(n.read)), slices.Sorted(maps.Keys(n.gone))
	slices.SortFunc(fresh, func(a, b introspect.NodeIPAM) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	clear(n.read)
	clear(n.gone)
	return fresh, gone
}

// Left tells people of nodes that left the cluster, whose rows are not printed any more.
func (f *Factory) Left(nodes []string) {
	for _, name := range nodes {
		f.Warn("node %s left the cluster", name)
	}
}
