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

// EmitLater queues an event for Run to send. It never blocks: excess events are held back,
// and while the API server is away only the newest of each kind waits.
func (c *Client) EmitLater(e notice.Event) { c.events.put(time.Now(), e) }

// FlushEvents tries to send each waiting event once, without pauses, and returns how many it
// sent. It is for a daemon that exits before it calls Run.
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

// DroppedEvents returns the number of events that were refused, too many or too old.
func (c *Client) DroppedEvents() uint64 { return c.events.count() }

// sender sends the waiting events.
type sender struct {
	c        *Client
	failures int  // in a row, without an answer
	failing  bool // a failure to send was logged
	refused  bool // a refusal by the API server was logged
}

// sendEvents sends waiting events until ctx ends.
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
			// The jitter spreads out events that a whole fleet has at the same moment.
			if !ok || !sleep(ctx, c.pauses.Jittered(2*c.pauses.First)) {
				break
			}
			s.send(ctx, w)
		}
	}
}

// pause returns the wait after failures. It precedes the choice of the next event, so that
// the newest one is sent.
func (s *sender) pause() time.Duration {
	if s.failures == 0 {
		return 0
	}
	return s.c.pauses.After(s.failures)
}

// send sends an event. It drops one that the API server refuses: events only help people,
// and the cause is in the log. During an outage of the API server the event waits.
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

// refused reports whether a retry would not help.
func refused(err error) bool {
	return errors.Is(err, ErrInvalid) || answered(err) && !apierrors.IsUnauthorized(err)
}

// logRefusal logs once that events are refused. Objects that vanish with their namespace and
// invalid names are normal, and logged at level debug.
func (s *sender) logRefusal(err error) {
	ordinary := errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || apierrors.HasStatusCause(err, namespaceTerminating)
	if s.refused || ordinary {
		s.c.log.Debug("event refused", slog.Any(logline.KeyError, err))
		return
	}
	s.refused = true
	s.c.log.Warn("the API server rejected an event; further rejections are not logged", slog.Any(logline.KeyError, err))
}
