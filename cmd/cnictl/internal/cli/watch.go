package cli

import (
	"context"
	"time"

	"cnictl/daemon/fleet/schedule"
)

// originalInterval is the least time between two readings of a node of the original:
// each request writes a line to its log.
const originalInterval = schedule.OriginalMin

// Watch is watch for those that do not tell the interval.
func (f *Factory) Watch(ctx context.Context, show func(context.Context) (original bool, err error), redraw func() error) error {
	var again func(time.Duration) error
	if redraw != nil {
		again = func(time.Duration) error { return redraw() }
	}
	return f.watch(ctx, func(ctx context.Context, _ time.Duration) (bool, error) { return show(ctx) }, again)
}

// watch calls show at once and then every interval, until ctx ends (no error: that
// is how watching ends) or show fails. show returns whether a node of the original
// was read; such nodes are read less often, which is said once. redraw, where not
// nil, is called when the terminal changed its size, or the interval did.
func (f *Factory) watch(ctx context.Context, show func(_ context.Context, every time.Duration) (original bool, err error), redraw func(every time.Duration) error) error {
	if f.recording != nil {
		return f.NoChange()
	}
	interval := f.Globals.Interval
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
		if original && interval < originalInterval {
			interval = originalInterval
			stop()
			ticks, stop = f.Tick(interval)
			if redraw == nil {
				f.Warn("some nodes run the original daemon, which logs every request: reading every %s", interval)
			} else if err := redraw(interval); err != nil { // the screen says it
				return err
			}
		}
		if err := f.await(ctx, ticks, interval, redraw); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (f *Factory) await(ctx context.Context, ticks <-chan time.Time, every time.Duration, redraw func(time.Duration) error) error {
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
