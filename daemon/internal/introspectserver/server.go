package introspectserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// DefaultAddr is where the original serves.
const DefaultAddr = "127.0.0.1:61679"

const (
	ioTimeout      = 5 * time.Second // read, write, idle: the original's
	drainTimeout   = 2 * time.Second
	maxHeaderBytes = 16 << 10
	socketMode     = 0o660
)

// Options configure a Server. Addr, Source and Log are required.
type Options struct {
	Addr   string // host:port, or unix:/path
	Source Source
	Log    *slog.Logger
}

// Server answers introspection requests.
type Server struct {
	network, addr string
	http          *http.Server
	ready         chan struct{} // closed when bound is set
	bound         string
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
	return &Server{
		network: network, addr: addr,
		http: &http.Server{
			Handler:           Handler(opts.Source, opts.Log),
			ReadHeaderTimeout: ioTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, IdleTimeout: ioTimeout,
			MaxHeaderBytes: maxHeaderBytes,
			ErrorLog:       slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
		},
		ready: make(chan struct{}),
	}, nil
}

// Handler answers the requests; Serve runs it on a listener.
func Handler(source Source, log *slog.Logger) http.Handler {
	return handler{source: source, log: log}
}

// parseAddr splits an INTROSPECTION_BIND_ADDRESS: unix:<path>, with nothing more
// stripped, or host:port.
func parseAddr(s string) (network, addr string, err error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		// 107 is what a Linux socket address can hold beside its end.
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

// Addr is where it listens, in the form of Options.Addr; valid once Ready is closed.
func (s *Server) Addr() string { return s.bound }

// Serve listens and answers until ctx ends, then lets requests in flight finish.
// It may be called once. A failure to listen is returned at once.
func (s *Server) Serve(ctx context.Context) error {
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
		if err := removeStale(ctx, s.addr); err != nil {
			return nil, err
		}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, s.network, s.addr)
	if err != nil {
		return nil, err
	}
	s.bound = ln.Addr().String()
	if s.network == "unix" {
		s.bound = "unix:" + s.addr
		if err := os.Chmod(s.addr, socketMode); err != nil {
			return nil, errors.Join(err, ln.Close())
		}
	}
	return ln, nil
}

// removeStale removes the socket file of a killed process, which would make listen
// fail for ever. A file that is no socket, or a socket that answers, is not ours to
// remove.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	dialer := net.Dialer{Timeout: time.Second}
	if conn, err := dialer.DialContext(ctx, "unix", path); err == nil {
		return errors.Join(fmt.Errorf("%s is served by another process", path), conn.Close())
	}
	return os.Remove(path)
}
