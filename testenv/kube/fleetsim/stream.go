package fleetsim

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Ports that a node's daemon listens on.
const (
	IntrospectionPort = 61679
	MetricsPort       = 61678
)

// streams is the listener of the HTTP server that serves all nodes' streams.
type streams struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newStreams() *streams { return &streams{conns: make(chan net.Conn), done: make(chan struct{})} }

func (l *streams) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *streams) close() { l.once.Do(func() { close(l.done) }) }

func (l *streams) Close() error   { l.close(); return nil }
func (l *streams) Addr() net.Addr { return nowhere{} }

type nowhere struct{}

func (nowhere) Network() string { return "fleetsim" }
func (nowhere) String() string  { return "node" }

// stream is the server's end of a connection to a port of a node.
type stream struct {
	net.Conn
	node *node
	port int
}

// streamKey is the context key of a request's stream.
type streamKey struct{}

// open connects to a port of a node, whatever its traits.
func (l *streams) open(ctx context.Context, n *node, port int) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- stream{far, n, port}:
		return near, nil
	case <-l.done:
	case <-ctx.Done():
	}
	_ = near.Close() // closing a pipe never fails
	_ = far.Close()
	return nil, net.ErrClosed
}

// DialNode connects to a port of a node as a program on the node would.
func (s *Sim) DialNode(ctx context.Context, name string, port int) (net.Conn, error) {
	n, ok := s.byName[name]
	if !ok {
		return nil, fmt.Errorf("dial node %q: unknown node", name)
	}
	if reason := n.refuses(port); reason != "" {
		return nil, fmt.Errorf("dial tcp4 127.0.0.1:%d: connect: connection refused", port)
	}
	return s.streams.open(ctx, n, port)
}

// refuses returns why nothing listens on a port, or "" if something does.
func (n *node) refuses(port int) string {
	_, away := n.flap(n.sim.now())
	switch {
	case port != IntrospectionPort && port != MetricsPort:
		return "no such port"
	case !n.hasPod() || n.has(NotReady) || n.has(Refused) || away:
		return "no daemon"
	case port == IntrospectionPort && n.has(UnixSocket):
		return "it is on a Unix socket"
	}
	return ""
}

// wait delays a stream. It returns false if the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// buffers serve [join], which thousands of short streams need.
var buffers = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// join copies in both directions between two ends until one of them ends, and closes both.
func join(a, b io.ReadWriteCloser) {
	var once sync.Once
	end := func() {
		once.Do(func() {
			_ = a.Close() // closing again is an error
			_ = b.Close()
		})
	}
	var both sync.WaitGroup
	for _, way := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		both.Go(func() {
			defer end()
			buffer := buffers.Get().(*[]byte)
			defer buffers.Put(buffer)
			_, _ = io.CopyBuffer(struct{ io.Writer }{way[0]}, struct{ io.Reader }{way[1]}, *buffer)
		})
	}
	both.Wait()
}
