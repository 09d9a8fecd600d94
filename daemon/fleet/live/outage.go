package live

import (
	"context"
	"errors"
	"net"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// outage is a time during which the API server refuses connections or does not answer. That
// says nothing about the nodes: they keep their last state, and one node at a time is tried
// until one can be reached. Live.mu guards it.
type outage struct {
	since time.Time // zero if there is none
	retry time.Time // no node is tried before
	wait  time.Duration
	why   string
}

// Times between two attempts.
const (
	outageRetry    = time.Second
	outageRetryMax = 30 * time.Second
)

// failed records that a node was not reached because the API server was not.
func (o *outage) failed(now time.Time, why string) {
	switch {
	case o.since.IsZero():
		o.since, o.wait = now, outageRetry
	case now.Before(o.retry):
		return // started before the last failure
	default:
		o.wait = min(2*o.wait, outageRetryMax)
	}
	o.retry, o.why = now.Add(o.wait), why
}

// answers records that the API server answered at the given time or later, and ends an outage
// that began before that. The caller holds l.mu.
func (l *Live) answers(at time.Time) {
	if at.After(l.heard) {
		l.heard = at
	}
	if !l.outage.since.IsZero() && !at.Before(l.outage.since) {
		l.outage = outage{}
		l.plan.Refresh()
	}
}

// may reports whether a node may be tried now. During an outage only one node at a time may.
func (o *outage) may(now time.Time, inFlight int) bool {
	return o.since.IsZero() || !now.Before(o.retry) && inFlight == 0
}

// until returns when to look again: during an outage not before the next attempt, and while
// an attempt runs, not before it ends.
func (o *outage) until(now time.Time, wait time.Duration, inFlight int) time.Duration {
	switch {
	case o.since.IsZero():
		return wait
	case inFlight > 0:
		return time.Hour
	}
	return max(wait, o.retry.Sub(now))
}

// answered reports whether the API server answered while a node was read. If the node itself
// was silent, it asks the API server.
func (l *Live) answered(ctx context.Context, m *member, out document.NodeIPAM) bool {
	if apiAnswered(out) {
		return true
	}
	if m.target.Dial == nil || l.opts.Kubernetes.Answers == nil || m.unreachable.Load() != nil {
		return false
	}
	since := l.opts.Now()
	if out.Error == nil || out.Error.Reason != introspect.ReasonTransport { // silent for more than apiFresh
		since = since.Add(-apiFresh)
	}
	if err := l.checkAPI(ctx, since); err != nil {
		m.unreachable.Store(new("API server unreachable: " + err.Error()))
		return false
	}
	return true
}

// apiAnswered reports that a sample, or the reason for its absence, came through the API
// server. A node may be silent because the API server is.
func apiAnswered(out document.NodeIPAM) bool {
	if out.Error == nil {
		return out.Summary != nil
	}
	switch out.Error.Reason {
	case introspect.ReasonRefused, introspect.ReasonForbidden, introspect.ReasonNoPod, introspect.ReasonPodNotRunning, introspect.ReasonStatus,
		introspect.ReasonBusy:
		return true
	}
	return out.Summary != nil
}

// Limits for checking whether the API server answers.
const (
	apiTimeout = 3 * time.Second
	apiFresh   = time.Second // how long the last result, good or bad, is reused for a silent node
)

// checkAPI asks the API server whether it answers, unless that is known as of since: the API
// server may be to blame for a silent node or a broken connection. Reads that fail together
// share one request.
func (l *Live) checkAPI(ctx context.Context, since time.Time) error {
	select {
	case l.checking <- struct{}{}:
		defer func() { <-l.checking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	heard := !l.heard.Before(since)
	l.mu.Unlock()
	switch {
	case heard:
		return nil
	case !l.checked.Before(since):
		return l.silence
	}
	ask, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	began := l.opts.Now()
	err := l.opts.Kubernetes.Answers(ask)
	if ctx.Err() == nil {
		l.checked, l.silence = began, err
	}
	return err
}

// unreachable returns why the API server could not be reached, if that is what failed.
func unreachable(err error) (why string, ok bool) {
	var api interface {
		error
		APIUnreachable() bool
	}
	if !errors.As(err, &api) || !api.APIUnreachable() {
		return "", false
	}
	return api.Error(), true
}

// recordUnreachable wraps a target so that its member records when the API server cannot be reached.
func (m *member) recordUnreachable(t fleet.Target) fleet.Target {
	if t.Dial == nil {
		return t
	}
	dial := t.Dial
	t.Dial = func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if why, ok := unreachable(err); ok {
			m.unreachable.Store(&why)
		}
		return conn, err
	}
	return t
}
