package kube

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/notice"
)

// namespaceTerminating marks the refusal to create something in a namespace that is
// being deleted (core/v1 NamespaceTerminatingCause).
const namespaceTerminating = "NamespaceTerminating"

// EmitLater hands an event to Run, which sends it. It never blocks: what is too much is
// held back, and while the API server is away the newest of each kind waits.
func (c *Client) EmitLater(e notice.Event) { c.events.put(time.Now(), e) }

// FlushEvents sends what waits, at once and once, and returns how many events it sent. It is
// for a daemon that ends before it ever calls Run.
func (c *Client) FlushEvents(ctx context.Context) (sent int, err error) {
	for {
		w, ok := c.events.take(time.Now())
		if !ok {
			return sent, err
		}
		if e := c.emit(ctx, w.event.Repeated(w.suppressed), w.at); e != nil {
			err = errors.Join(err, e)
			continue
		}
		sent++
	}
}

// DroppedEvents counts the events that were refused, too many or too old.
func (c *Client) DroppedEvents() uint64 { return c.events.count() }

// sender sends the events that wait.
type sender struct {
	c        *Client
	failures int  // in a row, without an answer
	failing  bool // it was logged that events cannot be sent
	refused  bool // it was logged that the API server refuses events
}

// sendEvents sends what waits until ctx ends.
func (c *Client) sendEvents(ctx context.Context) {
	s := &sender{c: c}
	for {
		select {
		case <-c.events.filled:
		case <-ctx.Done():
			return
		}
		for sleep(ctx, s.pause()) {
			w, ok := c.events.take(time.Now())
			// What a whole fleet meets at once is not sent at once.
			if !ok || !sleep(ctx, c.pauses.Jittered(2*c.pauses.First)) {
				break
			}
			s.send(ctx, w)
		}
	}
}

// pause is before the next event is chosen, so that it is the newest after a failure.
func (s *sender) pause() time.Duration {
	if s.failures == 0 {
		return 0
	}
	return s.c.pauses.After(s.failures)
}

// send sends an event. One that the API server does not take for what it is is given up:
// it is a help to people, and whoever wants to know finds the cause in the log. Of an
// API server that is away it waits for the return.
func (s *sender) send(ctx context.Context, w waitingEvent) {
	err := s.c.emit(ctx, w.event.Repeated(w.suppressed), w.at)
	switch {
	case err == nil:
		if s.failing {
			s.c.log.Info("events can be sent again")
		}
		s.failures, s.failing = 0, false
		s.c.events.answered(true)
	case ctx.Err() != nil:
	case refused(err):
		s.failures = 0
		s.c.events.answered(false)
		s.logRefusal(err)
	default:
		s.c.events.putBack(time.Now(), w)
		s.failures++
		if !s.failing {
			s.failing = true
			s.c.log.Warn("cannot send events; keeping the newest", slog.Any(logline.KeyError, err))
		}
	}
}

// refused reports that trying again would not help.
func refused(err error) bool {
	return errors.Is(err, ErrInvalid) || answered(err) && !apierrors.IsUnauthorized(err)
}

// logRefusal logs that events are refused, once. That an object went away with its namespace
// is ordinary, and so is a request with a name that cannot be.
func (s *sender) logRefusal(err error) {
	ordinary := errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || apierrors.HasStatusCause(err, namespaceTerminating)
	if s.refused || ordinary {
		s.c.log.Debug("event refused", slog.Any(logline.KeyError, err))
		return
	}
	s.refused = true
	s.c.log.Warn("the API server rejected an event; further rejections are not logged", slog.Any(logline.KeyError, err))
}
