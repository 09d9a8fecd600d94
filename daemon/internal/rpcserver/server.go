package rpcserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"cnictl/daemon/api/cniwire"
)

const (
	modeDir        = 0o755
	modeGRPCSocket = 0o660
	modeLeanSocket = 0o600 // only the plugin, which runs as root
)

// Backend answers requests. Its methods are called concurrently. They return once they have
// an answer, or soon after ctx ends (the client is gone, or draining took too long), and
// always return a reply.
type Backend interface {
	Add(ctx context.Context, req *cniwire.AddRequest) *cniwire.AddReply
	Del(ctx context.Context, req *cniwire.DelRequest) *cniwire.DelReply
	// Policy is only called by our plugin; upstream's calls the policy agent itself.
	Policy(ctx context.Context, req *cniwire.PolicyRequest) *cniwire.PolicyReply
	PolicyConfig() PolicyConfig
}

// PolicyConfig is the configuration that the network policy agent requests once, at its
// start.
type PolicyConfig struct {
	Mode       string // NETWORK_POLICY_ENFORCING_MODE as typed
	MultiNIC   bool
	NodeIPv4   string // only the cluster's family is set
	NodeIPv6   string
	InstanceID string
	Region     string
}

// Options configures a Server.
type Options struct {
	GRPCSocket string // default cniwire.GRPCSocket
	LeanSocket string // default cniwire.Socket
	Backend    Backend
	Log        *slog.Logger
	Version    string // of this build; compared with a client's version only for the log

	// Ready makes the health service [HealthService] report whether pods can get
	// addresses; nil: it is SERVING as long as the process serves.
	Ready func() bool

	// Renew makes the server check its socket files and listen again if they were removed;
	// nil: no checks. Renewed, unless nil, is called with each renewed path.
	Renew   <-chan struct{}
	Renewed func(path string)

	// MaxRequests bounds the requests in progress on each socket. It must exceed the
	// number of pods that may wait for an address at once, or DELs would queue behind
	// them. Default 1024, above the max-pods of every instance type.
	MaxRequests int
	// RequestTimeout bounds reading one lean request and writing one lean reply.
	// Default 5 s.
	RequestTimeout time.Duration
	// DrainLimit bounds how long requests in progress may take after ctx ends.
	// Default 5 s, half of the pod's termination grace period.
	DrainLimit time.Duration
}

// Server is created with New and used for one Serve.
type Server struct{ opts Options }

// New returns a server that does not listen yet.
func New(opts Options) *Server {
	opts.GRPCSocket = cmp.Or(opts.GRPCSocket, cniwire.GRPCSocket)
	opts.LeanSocket = cmp.Or(opts.LeanSocket, cniwire.Socket)
	opts.MaxRequests = cmp.Or(opts.MaxRequests, 1024)
	opts.RequestTimeout = cmp.Or(opts.RequestTimeout, 5*time.Second)
	opts.DrainLimit = cmp.Or(opts.DrainLimit, 5*time.Second)
	return &Server{opts: opts}
}

// Serve listens on both sockets until ctx ends, then drains and returns nil. It
// returns an error when it cannot listen or a listener breaks.
func (s *Server) Serve(ctx context.Context) error {
	grpcSocket, err := newSocket(ctx, s.opts.GRPCSocket, modeGRPCSocket)
	if err != nil {
		return err
	}
	leanSocket, err := newSocket(ctx, s.opts.LeanSocket, modeLeanSocket)
	if err != nil {
		return errors.Join(err, grpcSocket.Close())
	}

	// Requests outlive ctx while draining.
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	grpcServer := s.newGRPC()
	lean := newLean(s, leanSocket)

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// ErrServerStopped: ctx ended before this goroutine ran.
		if err := grpcServer.Serve(grpcSocket); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serve gRPC on %s: %w", s.opts.GRPCSocket, err)
		}
		return nil
	})
	group.Go(func() error {
		if err := lean.serve(requests); err != nil {
			return fmt.Errorf("serve %s: %w", s.opts.LeanSocket, err)
		}
		return nil
	})
	group.Go(func() error {
		s.renew(groupCtx, grpcSocket, leanSocket)
		return nil
	})
	group.Go(func() error {
		<-groupCtx.Done()
		limit := time.AfterFunc(s.opts.DrainLimit, func() {
			s.opts.Log.Warn("requests aborted: shutdown timeout", slog.Duration("duration", s.opts.DrainLimit))
			endRequests()
			grpcServer.Stop()
		})
		defer limit.Stop()
		lean.stopAccepting()
		grpcServer.GracefulStop()
		lean.wait()
		return nil
	})
	return group.Wait()
}

// renew listens again on removed sockets, whenever opts.Renew asks for it, until ctx ends.
func (s *Server) renew(ctx context.Context, sockets ...*socket) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.opts.Renew:
		}
		for _, k := range sockets {
			renewed, err := k.renew(ctx)
			if err != nil {
				s.opts.Log.Warn("could not create the removed socket again", slog.Any("error", err))
			}
			if renewed && s.opts.Renewed != nil {
				s.opts.Renewed(k.path)
			}
		}
	}
}

// slots bounds the requests in progress.
type slots chan struct{}

// acquire takes a slot, or reports that ctx ended first.
func (s slots) acquire(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) release() { <-s }

// noteVersion logs a client of another build, which is normal during an update.
func (s *Server) noteVersion(client string) {
	if client != s.opts.Version {
		s.opts.Log.Debug("client version mismatch", slog.String("client_version", client), slog.String("version", s.opts.Version))
	}
}
