package kube

import (
	"context"
	"sync"
	"time"
)

// AwayAfter is how long the API server must have been away before that is reported as more
// than a passing loss.
const AwayAfter = time.Minute

// reach records whether the API server can be reached. A failed request only raises a
// suspicion; a probe decides, so that one slow list is not taken for an outage.
type reach struct {
	suspected chan struct{} // holds at most one suspicion

	mu      sync.Mutex
	known   bool
	version string // "" = it cannot be reached
	err     error
	since   time.Time     // the outage was found; zero if there is none or it was reported as long
	again   chan struct{} // closed when it is back
}

func newReach() *reach {
	return &reach{suspected: make(chan struct{}, 1), again: make(chan struct{})}
}

// suspect asks for a probe. It does not block.
func (r *reach) suspect() {
	select {
	case r.suspected <- struct{}{}:
	default:
	}
}

// back returns a channel that is closed at the end of the next or current outage.
func (r *reach) back() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again
}

// found records the outcome of a probe sent at a time and returns what changed.
func (r *reach) found(sent time.Time, version string, err error) change {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.version
	if r.known && was == version {
		if r.since.IsZero() || sent.Sub(r.since) < AwayAfter {
			return 0
		}
		r.since, r.err = time.Time{}, err
		return awayChanged
	}
	r.known, r.version, r.err, r.since = true, version, err, time.Time{}
	if version == "" {
		r.since = time.Now()
	}
	if was == "" && version != "" {
		close(r.again)
		r.again = make(chan struct{})
	}
	return reachChanged
}

// state returns the last outcome.
func (r *reach) state() (version string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version, r.err
}

// probe asks the API server for its version until it answers, and again at every suspicion,
// until ctx ends. A reached server is lost after two failures: the first may be due to a
// connection that a load balancer has reset.
func (c *Client) probe(ctx context.Context) {
	const lost = 2
	for failures := 0; ; {
		sent := time.Now()
		version, err := c.knock(ctx)
		switch before, _ := c.reach.state(); {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			c.note(sent, version, nil)
			if !c.awaitSuspicion(ctx) {
				return
			}
		default:
			failures++
			if before == "" || failures >= lost {
				c.note(sent, "", err)
			}
			if !sleep(ctx, c.pauses.After(failures)) {
				return
			}
		}
	}
}

// unknownVersion is reported for an API server that does not reveal its version.
const unknownVersion = "unknown"

// knock asks for the version. Any answer shows that the API server is up: clusters may
// forbid /version to unprivileged clients.
func (c *Client) knock(ctx context.Context) (version string, err error) {
	version, err = c.ServerVersion(ctx)
	if err != nil && answered(err) {
		return unknownVersion, nil
	}
	return version, err
}

// note records the outcome of a probe and queues a report of what changed.
func (c *Client) note(sent time.Time, version string, err error) {
	if what := c.reach.found(sent, version, err); what != 0 {
		c.changes.note(what)
	}
}

// awaitSuspicion waits for a failed request, and then a moment, so that successful probes
// are spaced out.
func (c *Client) awaitSuspicion(ctx context.Context) bool {
	select {
	case <-c.reach.suspected:
		return sleep(ctx, c.pauses.Jittered(c.pauses.First/2+1))
	case <-ctx.Done():
		return false
	}
}
