package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// conduct is how a proxy treats connections.
type conduct int

const (
	forward conduct = iota
	refuse          // nothing listens
	hang            // connections are accepted, but no bytes are forwarded
)

// Proxy is a TCP proxy in front of the API server. It does not terminate TLS.
type Proxy struct {
	server   *Server
	listener *net.TCPListener

	mu      sync.Mutex // guards all below
	conduct conduct
	delay   time.Duration
	changed chan struct{} // closed and replaced when the conduct changes
	links   map[*link]struct{}
}

// Proxy forwards from the listener, which may be in a node's network namespace, or from a
// new loopback port if listener is nil. The API server's certificate is valid for
// 127.0.0.1, ::1 and localhost; kubeconfigs from Kubeconfig work with any address. The
// proxy ends with the test and closes the listener, which must be a TCP listener.
func (s *Server) Proxy(t testing.TB, listener net.Listener) *Proxy {
	t.Helper()
	if listener == nil {
		own, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("start proxy: %v", err)
		}
		listener = own
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		t.Fatalf("start proxy: the listener is a %T, not one for TCP", listener)
	}
	p, stop := s.Forward(tcp)
	t.Cleanup(stop)
	return p
}

// Forward is Proxy for programs that are not tests: it forwards from the listener until
// stop is called. stop closes the listener and returns when all connections have ended.
func (s *Server) Forward(listener *net.TCPListener) (p *Proxy, stop func()) {
	p = &Proxy{server: s, listener: listener, changed: make(chan struct{}), links: map[*link]struct{}{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.serve(ctx, &running) })
	return p, func() {
		cancel()
		listener.Close()
		p.Cut()
		running.Wait()
	}
}

// Addr returns the proxy's address, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Kubeconfig is Server.Kubeconfig through the proxy.
func (p *Proxy) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	return p.server.kubeconfig(t, user, p.Addr())
}

// Refuse makes the server absent: connections are cut, and the kernel refuses new ones
// because nothing listens.
func (p *Proxy) Refuse() error {
	if err := p.set(refuse, 0); err != nil {
		return err
	}
	p.Cut()
	return nil
}

// Hang makes the server silent: connections stay open and new ones are accepted, but nothing
// is forwarded, in either direction, until Restore.
func (p *Proxy) Hang() error { return p.set(hang, 0) }

// Slow delays traffic by d in each direction.
func (p *Proxy) Slow(d time.Duration) error { return p.set(forward, d) }

// Restore undoes Refuse, Hang and Slow. Data held back is forwarded.
func (p *Proxy) Restore() error { return p.set(forward, 0) }

// Cut resets the existing connections, as a load balancer does. New ones are
// handled as before.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := p.links
	p.links = map[*link]struct{}{}
	p.mu.Unlock()
	for l := range links {
		l.reset()
	}
}

// Connections returns the number of open connections.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// set changes the conduct. The kernel refuses connections to a bound socket that does not
// listen, as if there were no socket, and no other process gets the port.
func (p *Proxy) set(c conduct, delay time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	switch {
	case c == refuse && p.conduct != refuse:
		err = p.control(stopListening)
	case c != refuse && p.conduct == refuse:
		err = p.control(func(fd int) error { return unix.Listen(fd, unix.SOMAXCONN) })
	}
	if err != nil {
		return fmt.Errorf("change proxy %s: %w", p.Addr(), err)
	}
	p.conduct, p.delay = c, delay
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// stopListening shuts a listening socket down. If the kernel chose its port, the socket loses
// the port and is bound to it again.
func stopListening(fd int) error {
	address, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("get socket name: %w", err)
	}
	if err := unix.Shutdown(fd, unix.SHUT_RD); err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	if err := unix.Bind(fd, address); err != nil && !errors.Is(err, unix.EINVAL) { // still bound
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

func (p *Proxy) control(f func(fd int) error) error {
	raw, err := p.listener.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}

// now returns the current conduct and delay, and a channel that closes when they change.
func (p *Proxy) now() (conduct, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conduct, p.delay, p.changed
}

// serve accepts connections until the listener is closed or ctx ends.
func (p *Proxy) serve(ctx context.Context, running *sync.WaitGroup) {
	for {
		_, _, changed := p.now()
		conn, err := p.listener.AcceptTCP()
		if err == nil {
			running.Go(func() { p.carry(ctx, conn) })
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Most likely refusing: a socket that does not listen has nothing to accept.
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(pollEvery): //realtime: the pace
		}
	}
}

// carry connects a client to the server and returns when both directions are done.
func (p *Proxy) carry(ctx context.Context, client *net.TCPConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &link{client: client, cancel: cancel}
	if !p.add(l) {
		l.reset()
		return
	}
	defer p.remove(l)
	if !p.pass(ctx) { // a silent server is not even dialed
		l.reset()
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", p.server.Endpoint())
	if err != nil || !l.join(server.(*net.TCPConn)) {
		l.reset()
		return
	}
	l.carry(ctx, p)
}

// add registers a connection for Cut. It returns false for a connection that was accepted
// just before the server became absent.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conduct == refuse {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pass waits while the server is silent and reports whether ctx is still alive.
func (p *Proxy) pass(ctx context.Context) bool {
	for {
		c, _, changed := p.now()
		if c != hang {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}
