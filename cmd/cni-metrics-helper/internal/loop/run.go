package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/cmd/cni-metrics-helper/internal/publish"
	"cnictl/cmd/cni-metrics-helper/internal/scrape"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/listen"
)

// Deps are the dependencies of Run. CloudWatch and Queue are nil if nothing is sent, Listener
// is nil if Prometheus is not served. Run closes Listener.
type Deps struct {
	Interval   time.Duration
	Nodes      *scrape.Client
	Queue      *publish.Queue
	CloudWatch *publish.CloudWatch
	Exposition *publish.Exposition
	Listener   net.Listener
	Log        *slog.Logger
}

const (
	sendEvery      = 2                // polls, as upstream
	minPollTimeout = 10 * time.Second // a poll may take this long, or an interval if that is longer
	lastSend       = 10 * time.Second // for the send under way and the last: Kubernetes gives 30 s for both
	lastReply      = 2 * time.Second  // for Prometheus scrapes in progress
)

// Run works until ctx ends, then sends what is still queued.
func Run(ctx context.Context, d Deps) error {
	group, ctx := errgroup.WithContext(ctx)
	due := make(chan struct{}, 1)
	group.Go(func() error { newPoller(d).run(ctx, due); return nil })
	if d.CloudWatch != nil {
		s := &sender{Deps: d}
		group.Go(func() error { s.run(ctx, due); return nil })
	}
	if d.Listener != nil {
		group.Go(func() error { return serve(ctx, d) })
	}
	return group.Wait()
}

func serve(ctx context.Context, d Deps) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", d.Exposition.Handler())
	server := listen.HTTP(mux)
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReply)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close() // cuts off clients that are still reading
		}
	})
	defer stop()
	if err := server.Serve(listen.Limited(d.Listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics on %s: %w", d.Listener.Addr(), err)
	}
	return nil
}

// sender sends the queue whenever it is due.
type sender struct {
	Deps
	failing bool
}

func (s *sender) run(ctx context.Context, due <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			s.send(ctx)
			if n := s.Queue.Len(); n > 0 {
				s.Log.ErrorContext(ctx, "Stopped with figures that were not sent to CloudWatch", logline.KeyCount, n)
			}
			return
		case <-due:
			s.send(ctx)
		}
	}
}

func (s *sender) send(ctx context.Context) {
	longer, cancel := grace(ctx)
	defer cancel()
	sent, err := s.CloudWatch.Send(longer)
	if lost := s.Queue.Lost(); lost > 0 {
		s.Log.ErrorContext(ctx, "Dropped the oldest figures: CloudWatch could not be reached for too long", logline.KeyCount, lost)
	}
	switch {
	case err != nil:
		s.Log.ErrorContext(ctx, "Unable to publish CloudWatch metrics; they are kept and sent later while CloudWatch accepts their age", logline.KeyError, err, logline.KeyWaiting, s.Queue.Len())
	case s.failing:
		s.Log.InfoContext(ctx, "CloudWatch accepts metrics again", logline.KeyCount, sent)
	default:
		s.Log.DebugContext(ctx, "Sent metrics to CloudWatch", logline.KeyCount, sent)
	}
	s.failing = err != nil
}

// grace returns a context that outlives ctx by lastSend. A request that is cut off may have
// succeeded, and resending its data would count them twice.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(lastSend):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel() }
}

// data converts figures to what CloudWatch takes.
func data(figures []aggregate.Figure, at time.Time) []publish.Datum {
	out := make([]publish.Datum, len(figures))
	for i, f := range figures {
		out[i] = publish.Datum{Name: f.Published, Value: f.Value, At: at}
	}
	return out
}
