package fleetsim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Sim is a running fleet.
type Sim struct {
	opts  Options
	epoch time.Time // when it started: nodes depend on the time since then

	identity identity
	users    *users
	admin    string // the administrator's token
	url      string

	kinds  *catalogue
	hub    *hub
	nodes  []*node // by name
	byName map[string]*node
	byPod  map[string]*node // by the name of the aws-node pod

	streams *streams // to nodes
	servers sync.WaitGroup
	front   *http.Server
	inner   *http.Server
	ctx     context.Context // ends with the Sim
	stop    context.CancelFunc

	mu       sync.Mutex // guards the fields below and the roster of every node
	watchers map[*resource]int

	eventsMu sync.Mutex // guards events
	events   []*corev1.Event
}

// Start creates a fleet and serves it on the loopback until Close.
func Start(opts Options) (*Sim, error) {
	if err := opts.fill(); err != nil {
		return nil, fmt.Errorf("start fleet: %w", err)
	}
	id, err := newIdentity()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Sim{
		opts: opts, epoch: opts.Now(), identity: id, users: &users{of: map[string]user{}},
		kinds: newCatalogue(opts.IPv6), hub: newHub(), byName: map[string]*node{}, byPod: map[string]*node{},
		streams: newStreams(), ctx: ctx, stop: stop, watchers: map[*resource]int{},
	}
	s.admin = s.users.add(adminName)
	for i, traits := range opts.traits() {
		n := newNode(s, i, traits)
		s.nodes = append(s.nodes, n)
		s.byName[n.name], s.byPod[n.podName] = n, n
	}
	slices.SortFunc(s.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })

	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		stop()
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.url = "https://" + ln.Addr().String()
	errorLog := slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug)
	s.front = &http.Server{
		Handler: http.HandlerFunc(s.serveAPI), ErrorLog: errorLog, ReadHeaderTimeout: 30 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{id.server}, MinVersion: tls.VersionTLS12},
	}
	s.inner = &http.Server{
		Handler: http.HandlerFunc(s.serveNode), ErrorLog: errorLog, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 90 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, streamKey{}, c) },
	}
	s.servers.Go(func() { s.served(s.front.ServeTLS(ln, "", "")) })
	s.servers.Go(func() { s.served(s.inner.Serve(s.streams)) })
	s.servers.Go(s.tend)
	return s, nil
}

// New is Start for a test, and closes the fleet when the test ends.
func New(tb testing.TB, opts Options) *Sim {
	tb.Helper()
	s, err := Start(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func (s *Sim) served(err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.opts.Log.Error("fleet server failed", slog.Any("error", err))
	}
}

// Close stops the fleet and closes all its connections.
func (s *Sim) Close() {
	s.stop()
	_ = s.front.Close() // before the nodes, for which it would answer; only listeners are closed
	s.streams.close()
	_ = s.inner.Close()
	s.servers.Wait()
}

// URL returns the API server's URL.
func (s *Sim) URL() string { return s.url }

// Node describes one node of a fleet.
type Node struct {
	Name    string
	Pod     string // its aws-node pod, "" if none
	Release string // of upstream; "" for our daemon
	Traits  []Trait
}

// Has reports whether the node has a trait.
func (n Node) Has(t Trait) bool { return slices.Contains(n.Traits, t) }

// Nodes describes every node, by name.
func (s *Sim) Nodes() []Node {
	out := make([]Node, 0, len(s.nodes))
	for _, n := range s.nodes {
		d := Node{Name: n.name, Pod: n.podName, Release: n.release, Traits: n.traits}
		if !n.hasPod() {
			d.Pod = ""
		}
		out = append(out, d)
	}
	return out
}

func (s *Sim) now() time.Time { return s.opts.Now() }

// watched counts a watcher of a resource until the returned function is called.
func (s *Sim) watched(r *resource) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[r]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers[r]--
	}
}

// whenStopped calls f when the fleet is closed, unless forget is called first.
func (s *Sim) whenStopped(f func()) (forget func() bool) { return context.AfterFunc(s.ctx, f) }
