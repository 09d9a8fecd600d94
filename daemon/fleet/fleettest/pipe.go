package fleettest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// Pipe is a node behind in-memory connections, for tests with a fake clock (testing/synctest): it
// is a target's Dial without sockets.
type Pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	dials  atomic.Int64
	open   atomic.Int64
}

// ServePipe serves a node in memory until the test ends.
func ServePipe(tb testing.TB, h http.HandlerFunc) *Pipe {
	tb.Helper()
	p := &Pipe{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- s.Serve(p) }()
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close node: %v", err)
		}
		<-done
	})
	return p
}

// Dial connects to the node.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	p.dials.Add(1)
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		p.open.Add(1)
		return &counted{Conn: near, open: &p.open}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Dials returns the number of attempted connections.
func (p *Pipe) Dials() int { return int(p.dials.Load()) }

// Open returns the number of open connections.
func (p *Pipe) Open() int { return int(p.open.Load()) }

// Accept, Close and Addr make Pipe a listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns a placeholder.
func (p *Pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
