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

// conduct is what a proxy does with connections.
type conduct int

const (
	forward conduct = iota
	refuse          // nothing listens
	hang            // connections are taken, bytes are not passed on
)

// Proxy is a TCP proxy before the API server. TLS goes through it unseen.
type Proxy struct {
	server   *Server
	listener *net.TCPListener

	mu      sync.Mutex // guards all below
	conduct conduct
	delay   time.Duration
	changed chan struct{} // closed and replaced when the conduct changes
	links   map[*link]struct{}
}

// Proxy forwards from the listener, which may be in a node's network namespace, or from
// a loopback port of its own if that is nil. The API server's certificate is good for
// 127.0.0.1, ::1 and localhost; kubeconfigs of Kubeconfig are good for any address. The
// proxy ends with the test and closes the listener, which must be a TCP one.
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

// Forward is Proxy for a program that is no test: it forwards from the listener until
// stop is called, which closes it and returns when nothing is left.
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

// Addr is the proxy's own address, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Kubeconfig is Server.Kubeconfig through the proxy.
func (p *Proxy) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	return p.server.kubeconfig(t, user, p.Addr())
}

// Refuse makes the server absent: connections are cut, and new ones are refused by the
// kernel because nothing listens.
func (p *Proxy) Refuse() error {
	if err := p.set(refuse, 0); err != nil {
		return err
	}
	p.Cut()
	return nil
}

// Hang makes the server silent: connections stay and new ones are taken, but nothing is
// passed on, in either direction, until Restore.
func (p *Proxy) Hang() error { return p.set(hang, 0) }

// Slow delays what goes through by d in each direction.
func (p *Proxy) Slow(d time.Duration) error { return p.set(forward, d) }

// Restore undoes Refuse, Hang and Slow. What was held back is passed on.
func (p *Proxy) Restore() error { return p.set(forward, 0) }

// Cut resets the connections that there are, as a load balancer does. New ones are
// dealt with as before.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := p.links
	p.links = map[*link]struct{}{}
	p.mu.Unlock()
	for l := range links {
		l.reset()
	}
}

// Connections is how many connections there are.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// set changes the behaviour. For a bound socket that does not listen the kernel refuses
// connections as for no socket at all, and no other process gets the port.
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

// stopListening shuts a listening socket down. One that was bound to any port loses its
// port by that and is bound to the same again.
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

// now returns what to do with bytes, and a channel that closes when that changes.
func (p *Proxy) now() (conduct, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conduct, p.delay, p.changed
}

// serve takes connections until ctx ends.
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
		// Refusing, most likely: a socket that does not listen has nothing to accept.
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(pollEvery):
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
	if !p.pass(ctx) { // a silent server is not even reached
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

// add keeps a connection for Cut. One that was taken just before the server became
// absent is not kept.
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

// pass waits while the server is silent and reports whether ctx goes on.
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
