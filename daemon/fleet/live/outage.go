package live

import (
	"context"
	"errors"
	"net"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// outage is a time in which no connection to the API server can be made. That says nothing
// about the nodes: what is known of them stays, and one node at a time is tried until one
// can be reached. Live.mu guards it.
type outage struct {
	since time.Time // zero: there is none
	retry time.Time // no node is tried before
	wait  time.Duration
	why   string
}

// Times between two tries.
const (
	outageRetry    = time.Second
	outageRetryMax = 30 * time.Second
)

// failed notes a node that was not reached because the API server was not.
func (o *outage) failed(now time.Time, why string) {
	switch {
	case o.since.IsZero():
		o.since, o.wait = now, outageRetry
	case now.Before(o.retry):
		return // begun before the last that failed
	default:
		o.wait = min(2*o.wait, outageRetryMax)
	}
	o.retry, o.why = now.Add(o.wait), why
}

// over notes that the API server answers; true: it did not before.
func (o *outage) over() bool {
	was := !o.since.IsZero()
	*o = outage{}
	return was
}

// may tells whether a node may be tried now; of those that wait for an outage to end it is
// one at a time.
func (o *outage) may(now time.Time, inFlight int) bool {
	return o.since.IsZero() || !now.Before(o.retry) && inFlight == 0
}

// until is when to look again: nothing is due before the next try, and while a node is
// tried its end is waited for.
func (o *outage) until(now time.Time, wait time.Duration, inFlight int) time.Duration {
	switch {
	case o.since.IsZero():
		return wait
	case inFlight > 0:
		return time.Hour
	}
	return max(wait, o.retry.Sub(now))
}

// apiAnswered tells that a sample, or the reason why there is none, came through the API
// server. A node that is silent may be so because the API server is.
func apiAnswered(out introspect.NodeIPAM) bool {
	if out.Error == nil {
		return out.Summary != nil
	}
	switch out.Error.Reason {
	case introspect.ReasonRefused, introspect.ReasonForbidden, introspect.ReasonNoPod, introspect.ReasonPodNotRunning, introspect.ReasonStatus, introspect.ReasonBusy:
		return true
	}
	return out.Summary != nil
}

// noting is a target whose member learns that the API server could not be reached.
func (m *member) noting(t fleet.Target) fleet.Target {
	if t.Dial == nil {
		return t
	}
	dial := t.Dial
	t.Dial = func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		var api interface{ APIUnreachable() bool }
		if errors.As(err, &api) && api.APIUnreachable() {
			why := err.Error()
			m.unreachable.Store(&why)
		}
		return conn, err
	}
	return t
}
