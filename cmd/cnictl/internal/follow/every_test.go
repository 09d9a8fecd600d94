package follow

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/cmd/cnictl/internal/cli"
)

// TestEvery_IsGentleWithUpstream drives the loop by hand, so no time passes.
func TestEvery_IsGentleWithUpstream(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := make(chan time.Time, 1)
	var intervals []time.Duration
	stopped := 0
	var errOut bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Err: &errOut},
		Tick: func(d time.Duration) (<-chan time.Time, func()) {
			intervals = append(intervals, d)
			return ticks, func() { stopped++ }
		},
		Globals: cli.Globals{Interval: 5 * time.Second},
	}
	shows := 0
	err := Every(ctx, f, f.Globals.Interval, func(context.Context, time.Duration) (bool, error) {
		shows++
		ticks <- time.Time{}
		if shows == 3 {
			cancel()
		}
		return shows >= 2, nil
	}, nil)
	if err != nil || shows != 3 || stopped != 2 {
		t.Errorf("%v after %d, %d tickers stopped", err, shows, stopped)
	}
	if diff := cmp.Diff([]time.Duration{5 * time.Second, 10 * time.Second}, intervals); diff != "" {
		t.Error(diff)
	}
	if got := errOut.String(); got != "warning: some nodes run the upstream daemon, which logs every request: reading every 10s\n" {
		t.Errorf("%q", got)
	}
}

func TestEvery_RedrawsOnResizeAndStopsOnError(t *testing.T) {
	t.Parallel()
	resized := make(chan struct{}, 1)
	ticks := make(chan time.Time, 1)
	f := &cli.Factory{
		Streams: &cli.Streams{Err: new(bytes.Buffer), Resized: resized},
		Tick:    func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} },
		Globals: cli.Globals{Interval: 5 * time.Second},
	}
	boom := errors.New("boom")
	redrawn := 0
	shows := 0
	err := Every(t.Context(), f, f.Globals.Interval, func(context.Context, time.Duration) (bool, error) {
		if shows++; shows == 2 {
			return false, boom
		}
		resized <- struct{}{}
		return false, nil
	}, func(time.Duration) error {
		redrawn++
		ticks <- time.Time{}
		return nil
	})
	if !errors.Is(err, boom) || redrawn != 1 {
		t.Errorf("%v, redrawn %d times", err, redrawn)
	}
}
