package live_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/tunnel"
)

// While the API server is unreachable no node is said to be: all keep what was read last,
// one problem says why, and few tries are made until it is back.
func TestLive_APIServerUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		var dials atomic.Int64
		const nodes = 40
		b := run(t, live.Options{Interval: 5 * time.Second, Background: 10 * time.Second})
		var targets []fleet.Target
		for i := range nodes {
			n := newNode(t, fmt.Sprintf("n%d", i))
			target := n.target()
			target.Dial = func(ctx context.Context) (net.Conn, error) {
				dials.Add(1)
				if gone.Load() {
					return nil, tunnel.Failed(ctx, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
				}
				return n.Dial(ctx)
			}
			targets = append(targets, target)
		}
		b.roster.put(targets...)
		elapse(30 * time.Second)
		live := func() (n int) {
			for _, x := range b.View().Nodes {
				if x.State == introspect.StateLive && x.Error == nil {
					n++
				}
			}
			return n
		}
		if live() != nodes || b.Stats().Problem != "" {
			t.Fatalf("%d live before, %q", live(), b.Stats().Problem)
		}
		gone.Store(true)
		elapse(15 * time.Second)
		before, began := dials.Load(), b.Stats().ProblemAt
		elapse(5 * time.Minute)
		s := b.Stats()
		if live() != nodes || !strings.Contains(s.Problem, "unreachable: connection refused") || s.RetryAt.IsZero() || s.ProblemAt != began || began.IsZero() {
			t.Errorf("away: %d live, %+v", live(), s)
		}
		if n := dials.Load() - before; n < 5 || n > 60 { // a try is up to two dials
			t.Errorf("dialled %d times in 5 minutes", n)
		}
		gone.Store(false)
		elapse(45 * time.Second)
		s = b.Stats()
		if live() != nodes || s.Problem != "" || !s.RetryAt.IsZero() {
			t.Errorf("back: %d live, %+v", live(), s)
		}
		for _, x := range b.View().Nodes {
			if age := time.Since(*x.SampledAt); age > 30*time.Second {
				t.Errorf("%s was not read again: %v old", x.Metadata.Name, age)
			}
		}
	})
}
