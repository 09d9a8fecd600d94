package kube

import (
	"context"
	"sync"
)

// reach is whether the API server can be reached. Requests that fail make it suspect;
// a probe decides, so that one slow list is not taken for an outage.
type reach struct {
	suspected chan struct{} // holds one suspicion

	mu      sync.Mutex
	known   bool
	version string // "" = it cannot be reached
	err     error
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

// back is closed when the API server is reached the next time after it was not.
func (r *reach) back() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again
}

// found notes the outcome of a probe and reports whether it changed.
func (r *reach) found(version string, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.version
	if r.known && was == version {
		return false
	}
	r.known, r.version, r.err = true, version, err
	if was == "" && version != "" {
		close(r.again)
		r.again = make(chan struct{})
	}
	return true
}

// state is the last outcome.
func (r *reach) state() (version string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version, r.err
}

// probe asks the API server for its version until it answers, and again whenever it is
// suspect, until ctx ends. One that was reached is lost when it fails twice: a
// connection that a load balancer resets takes the probe on it along.
func (c *Client) probe(ctx context.Context) {
	const lost = 2
	for failures := 0; ; {
		version, err := c.knock(ctx)
		switch before, _ := c.reach.state(); {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			c.note(version, nil)
			if !c.awaitSuspicion(ctx) {
				return
			}
		default:
			failures++
			if before == "" || failures >= lost {
				c.note("", err)
			}
			if !sleep(ctx, c.pauses.After(failures)) {
				return
			}
		}
	}
}

// unknownVersion is reported of an API server that does not say its version.
const unknownVersion = "unknown"

// knock asks for the version. Any answer shows that the API server is there: clusters
// may keep /version from those without a right to read it.
func (c *Client) knock(ctx context.Context) (version string, err error) {
	version, err = c.ServerVersion(ctx)
	if err != nil && answered(err) {
		return unknownVersion, nil
	}
	return version, err
}

// note reports the outcome of a probe if it changes anything.
func (c *Client) note(version string, err error) {
	if c.reach.found(version, err) {
		c.changes.note(reachChanged)
	}
}

// awaitSuspicion waits for a request to fail; probes that all succeed keep a distance.
func (c *Client) awaitSuspicion(ctx context.Context) bool {
	select {
	case <-c.reach.suspected:
		return sleep(ctx, c.pauses.Jittered(c.pauses.First/2+1))
	case <-ctx.Done():
		return false
	}
}
