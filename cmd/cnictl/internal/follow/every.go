package follow

import (
	"context"
	"slices"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// UpstreamInterval is the minimum time between two readings of an upstream node, which logs a
// line for each request.
const UpstreamInterval = watch.UpstreamMin

// Every calls show immediately and then every interval, until ctx ends (no error: that is how
// watching ends) or show fails. show returns whether an upstream node was read; such nodes
// are read less often, and a warning says so once. redraw, if not nil, is called when the
// terminal's size or the interval changes.
func Every(ctx context.Context, f *cli.Factory, interval time.Duration,
	show func(_ context.Context, every time.Duration) (original bool, err error), redraw func(every time.Duration) error) error {
	if f.Recording != nil {
		return NoChange(f)
	}
	ticks, stop := f.Tick(interval)
	defer func() { stop() }()
	for {
		original, err := show(ctx, interval)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if original && interval < UpstreamInterval {
			interval = UpstreamInterval
			stop()
			ticks, stop = f.Tick(interval)
			if redraw == nil {
				f.Warn("some nodes run the upstream daemon, which logs every request: reading every %s", interval)
			} else if err := redraw(interval); err != nil { // the screen shows the interval
				return err
			}
		}
		if err := await(ctx, f, ticks, interval, redraw); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func await(ctx context.Context, f *cli.Factory, ticks <-chan time.Time, every time.Duration, redraw func(time.Duration) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
			return nil
		case <-f.Streams.Resized:
			if redraw == nil {
				continue
			}
			if err := redraw(every); err != nil {
				return err
			}
		}
	}
}

// HasUpstream reports whether an upstream node was read.
func HasUpstream(v *store.View) bool {
	return slices.ContainsFunc(v.Nodes, func(n *store.Node) bool { return n.Source == document.SourceV1 })
}
