package live_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/fleet/watch"
)

// While the API server is unreachable, no node is marked unreachable: all keep their last
// readings, one problem gives the cause, and retries are few until it is back.
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
				if x.State == document.StateLive && x.Error == nil {
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
		if n := dials.Load() - before; n < 5 || n > 60 { // a try takes up to two dials
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

// An API server that accepts connections but no longer answers, because it is stopped or a
// network drops its packets, is not the nodes' fault. A single node that does not answer is
// at fault as long as the API server answers.
func TestLive_APIServerHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		var asked atomic.Int64
		const nodes = 40
		b := run(t, live.Options{Interval: 5 * time.Second, Background: 10 * time.Second, Kubernetes: live.Kubernetes{
			Answers: func(ctx context.Context) error {
				asked.Add(1)
				if hangs.Load() {
					<-ctx.Done()
					return tunnel.Failed(ctx, ctx.Err())
				}
				return nil
			},
		}})
		// Open connections and new ones hang alike.
		behind := func(dial func(context.Context) (net.Conn, error), dead func() bool) func(context.Context) (net.Conn, error) {
			return func(ctx context.Context) (net.Conn, error) {
				if dead() {
					<-ctx.Done()
					return nil, tunnel.Failed(ctx, ctx.Err())
				}
				conn, err := dial(ctx)
				return &hanging{conn, dead}, err
			}
		}
		var targets []fleet.Target
		visible := []string{"dead"}
		for i := range nodes {
			n := newNode(t, fmt.Sprintf("n%d", i))
			target := n.target()
			target.Dial = behind(n.Dial, hangs.Load)
			targets, visible = append(targets, target), append(visible, n.name)
		}
		dead := newNode(t, "dead").target()
		dead.Dial = behind(nil, func() bool { return true })
		b.Focus(watch.Focus{Visible: visible})
		b.roster.put(append(targets, dead)...)
		live := func() (n int) {
			for _, x := range b.View().Nodes {
				if x.State == document.StateLive && x.Error == nil {
					n++
				}
			}
			return n
		}
		failed := func() bool {
			n := b.View().Nodes[slices.IndexFunc(b.View().Nodes, func(n *store.Node) bool { return n.Metadata.Name == "dead" })]
			return n.State == document.StateUnreachable
		}
		elapse(32 * time.Second)
		if s := b.Stats(); live() != nodes || !failed() || s.Outage() || s.Problem != "" {
			t.Fatalf("%d live before, dead failed: %v, %+v", live(), failed(), s)
		}
		hangs.Store(true)
		for range 60 {
			elapse(2 * time.Second)
			if live() != nodes {
				t.Fatalf("%d live while the API server hangs, %+v", live(), b.Stats())
			}
		}
		if s := b.Stats(); !s.Outage() || !strings.Contains(s.Problem, "the API server did not answer") {
			t.Errorf("hangs: %+v", s)
		}
		hangs.Store(false)
		elapse(45 * time.Second)
		if s := b.Stats(); live() != nodes || !failed() || s.Outage() || s.Problem != "" {
			t.Errorf("back: %d live, dead failed: %v, %+v", live(), failed(), s)
		}
		before := asked.Load()
		elapse(10 * time.Minute)
		if n := asked.Load() - before; n > 12 { // the dead node is tried once a minute
			t.Errorf("asked the API server %d times in 10 minutes", n)
		}
	})
}

// An API server that ends right after it answered breaks the connections over which nodes
// are being read, and those that it still accepts before it refuses new ones.
func TestLive_APIServerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends, ended atomic.Bool
		var failed atomic.Int64
		refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		b := run(t, live.Options{
			Interval: 5 * time.Second,
			Sampled: func(out document.NodeIPAM) {
				if out.Error != nil {
					failed.Add(1)
				}
			},
			Kubernetes: live.Kubernetes{Answers: func(ctx context.Context) error {
				if ends.Load() {
					return tunnel.Failed(ctx, refused)
				}
				return nil
			}},
		})
		const nodes = 10
		var targets []fleet.Target
		var visible []string
		for i := range nodes {
			n := newNode(t, fmt.Sprintf("n%d", i))
			target := n.target()
			target.Dial = func(ctx context.Context) (net.Conn, error) {
				if ended.Load() {
					return nil, tunnel.Failed(ctx, refused)
				}
				conn, err := n.Dial(ctx)
				return &slow{conn, time.Duration(i) * 50 * time.Millisecond, ends.Load}, err
			}
			targets, visible = append(targets, target), append(visible, n.name)
		}
		b.Focus(watch.Focus{Visible: visible})
		b.roster.put(targets...)
		elapse(30 * time.Second)
		if s := b.Stats(); failed.Load() > 0 || s.Problem != "" {
			t.Fatalf("%d failed before, %+v", failed.Load(), s)
		}
		for b.Stats().InFlight < nodes/2 { // some have finished their reads
			elapse(10 * time.Millisecond)
		}
		ends.Store(true)
		elapse(time.Second)
		ended.Store(true)
		elapse(time.Minute)
		if s := b.Stats(); failed.Load() > 0 || !s.Outage() {
			t.Errorf("%d failed, %+v", failed.Load(), s)
		}
	})
}

// slow is a connection whose reads take a while, and which can break.
type slow struct {
	net.Conn
	by     time.Duration
	broken func() bool
}

func (c *slow) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if <-time.After(c.by); c.broken() {
		return 0, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	}
	return n, err
}

// hanging is a connection that delivers nothing while hangs returns true.
type hanging struct {
	net.Conn
	hangs func() bool
}

func (c *hanging) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.hangs() { // until its deadline, or until it is closed
		n, err = c.Conn.Read(b)
	}
	return n, err
}
