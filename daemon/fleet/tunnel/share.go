package tunnel

import (
	"context"
	"net"
	"sync"
)

// Shared dials streams to one pod that share a tunnel: the first stream opens it and the last
// one closes it. It is safe for concurrent use.
type Shared struct {
	dialer *Dialer
	pod    Pod

	mu    sync.Mutex // guards all below
	open  *Tunnel    // nil if none
	users map[*Tunnel]int
}

// Share makes a Shared; it does not connect.
func (d *Dialer) Share(pod Pod) *Shared {
	return &Shared{dialer: d, pod: pod}
}

// Dial opens a stream to a port.
func (s *Shared) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	t := s.join()
	if t == nil {
		var err error
		if t, err = s.dialer.Open(ctx, s.pod); err != nil {
			return nil, err
		}
		s.add(t)
	}
	c, err := t.Dial(ctx, port)
	if err != nil {
		s.leave(t)
		return nil, err
	}
	return &sharedConn{Conn: c, leave: sync.OnceFunc(func() { s.leave(t) })}, nil
}

// join returns the open tunnel if it still works, else nil.
func (s *Shared) join() *Tunnel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return nil
	}
	select {
	case <-s.open.Done():
		s.open = nil
		return nil
	default:
	}
	s.users[s.open]++
	return s.open
}

// add makes a new tunnel available for sharing. If two were opened concurrently, the later one
// wins.
func (s *Shared) add(t *Tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users = map[*Tunnel]int{}
	}
	s.open = t
	s.users[t]++
}

// leave drops a user of a tunnel and closes the tunnel if that was the last one.
func (s *Shared) leave(t *Tunnel) {
	s.mu.Lock()
	s.users[t]--
	last := s.users[t] == 0
	if last {
		delete(s.users, t)
		if s.open == t {
			s.open = nil
		}
	}
	s.mu.Unlock()
	if last {
		t.Close()
	}
}

// sharedConn is a stream whose end may close its tunnel.
type sharedConn struct {
	net.Conn
	leave func()
}

func (c *sharedConn) Close() error {
	c.leave() // first: a stream of a closed tunnel need not be reset
	return c.Conn.Close()
}
