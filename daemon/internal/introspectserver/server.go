package introspectserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/listen"
)

// DefaultAddr is upstream's address.
const DefaultAddr = "127.0.0.1:61679"

const (
	drainTimeout = 2 * time.Second
	socketMode   = 0o660
	lockTimeout  = 3 * time.Second // another daemon holds it for at most the 1 s of its dial
)

// Options configure a Server. Addr, Source and Log are required. Each of the others
// enables one path, which is otherwise not listed and answers 404.
type Options struct {
	Addr   string // host:port, or unix:/path
	Source Source
	Log    *slog.Logger

	Events   *Feed       // /v1/events
	Failures *FailureLog // /v1/failures

	// Pool returns the planner's input, for /v1/plan. It is called once per request,
	// concurrently; its result is only read.
	Pool func(context.Context) (Pool, error)

	// ObservePod reads the kernel's state for a pod's address, for /v1/pod
	// (hostnet.Host.ObservePod). hostLink is the expected name of the pod's link.
	ObservePod func(ctx context.Context, address netip.Addr, hostLink string) (introspect.PodKernel, error)

	// ReadLog reads the daemon's own log, scrubbed, for /v1/logs (logging.Tail). It
	// returns [introspect.ErrNoLogFile] if there is no file to read.
	ReadLog func(context.Context, introspect.LogQuery) (introspect.NodeLogs, error)

	// SubnetHistory returns EC2's earlier counts of free addresses, for /v1/subnet-history.
	SubnetHistory func() introspect.NodeSubnetHistory
}

// Server answers introspection requests.
type Server struct {
	network, addr string
	http          *http.Server
	served        atomic.Bool
	ready         chan struct{} // closed when bound is set
	bound         string
	stop          chan struct{} // closed when Serve ends, to answer waiting requests
}

// New checks the options and builds a server.
func New(opts Options) (*Server, error) {
	network, addr, err := parseAddr(opts.Addr)
	if err != nil {
		return nil, err
	}
	if opts.Source == nil || opts.Log == nil {
		return nil, errors.New("build introspection server: Source and Log are required")
	}
	host := ""
	if network == "tcp" {
		host, _, _ = net.SplitHostPort(addr) // checked by parseAddr
	}
	stop := make(chan struct{})
	server := listen.HTTP(newHandler(opts, host, stop))
	server.ErrorLog = slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug)
	return &Server{network: network, addr: addr, stop: stop, http: server, ready: make(chan struct{})}, nil
}

// parseAddr splits an INTROSPECTION_BIND_ADDRESS: unix:<path>, with nothing else stripped,
// or host:port.
func parseAddr(s string) (network, addr string, err error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		// A Linux socket address holds 107 bytes besides the final NUL.
		if path == "" || len(path) > 107 || strings.ContainsRune(path, 0) {
			return "", "", fmt.Errorf("introspection address %q: a socket path of 1 to 107 bytes is accepted after unix:", s)
		}
		return "unix", path, nil
	}
	if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
		return "", "", fmt.Errorf("introspection address %q: accepted are host:port and unix:/path", s)
	}
	return "tcp", s, nil
}

// Ready is closed once the server listens.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Addr returns the bound address, in the form of Options.Addr; valid once Ready is closed.
func (s *Server) Addr() string { return s.bound }

// Serve listens and answers until ctx ends, then lets requests in flight finish. If it
// cannot listen, it returns at once. It may be called only once per Server.
func (s *Server) Serve(ctx context.Context) error {
	if s.served.Swap(true) {
		return errors.New("serve introspection: this server has been started before, make a new one")
	}
	ln, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen for introspection: %w", err)
	}
	stopped := make(chan struct{})
	defer close(stopped)
	drained := make(chan error, 1)
	go func() {
		select {
		case <-ctx.Done():
		case <-stopped:
		}
		close(s.stop)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		err := s.http.Shutdown(drain)
		if err != nil {
			err = errors.Join(err, s.http.Close())
		}
		drained <- err
	}()
	close(s.ready)
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve introspection: %w", err)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("stop introspection: %w", err)
	}
	return nil
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	if s.network == "unix" {
		unlock, err := lockDirectory(ctx, filepath.Dir(s.addr))
		if err != nil {
			return nil, err
		}
		defer unlock()
		ln, err := listen.Unix(ctx, s.addr, socketMode)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.addr, err)
		}
		s.bound = "unix:" + s.addr
		return listen.Limited(ln), nil
	}
	ln, err := new(net.ListenConfig).Listen(ctx, s.network, s.addr)
	if err != nil {
		return nil, err
	}
	s.bound = ln.Addr().String()
	return listen.Limited(ln), nil
}

// lockDirectory keeps other daemons from replacing a socket in the directory between the
// check for a stale one and the listen; otherwise the second daemon would remove the socket
// that the first has just made. It locks the directory itself, so that no file is left.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() } // also releases the lock
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			unlock()
			return nil, fmt.Errorf("lock directory %s: %w", dir, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("lock directory %s: another process holds it", dir)
		}
	}
}
