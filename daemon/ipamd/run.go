package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/keeper"
)

// Deps is what the daemon's process passes to Run. Empty paths and addresses mean upstream's.
type Deps struct {
	Config   config.Config
	Problems []config.Problem // of loading Config
	Version  string
	Started  time.Time // of the process

	GRPCSocket  string
	LeanSocket  string
	MetricsAddr string

	PolicySocket string // of the network policy agent
}

// The process ends at most drainGrace after SIGTERM, which is below the manifest's
// terminationGracePeriodSeconds of 10. Operations are asked to end at opsGrace, which leaves
// them time to clean up.
const (
	opsGrace   = 5 * time.Second
	drainGrace = 8 * time.Second
)

// Run starts the daemon and serves until ctx ends. Then it stops taking requests, answers
// those it has, lets EC2 calls in flight finish within drainGrace and returns nil. Any error
// is fatal to the process and has already been logged.
func Run(ctx context.Context, d Deps) error {
	log, closer, err := logging.Open(logging.Options{Path: d.Config.LogFile, Level: d.Config.LogLevel})
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	err = run(ctx, d, log)
	if err != nil {
		log.Error(err.Error()) //nolint:sloglint // the fatal reason is the message people search for
	}
	return errors.Join(err, closer.Close())
}

func run(ctx context.Context, d Deps, log *slog.Logger) error {
	log.Info(textStarting+" "+d.Version+"  ...", slog.String(logline.KeyVersion, d.Version)) //nolint:sloglint // upstream's line
	// Check whatever needs no facts about the instance before touching anything.
	if err := reportProblems(log, append(d.Problems, config.Validate(d.Config, config.Facts{})...)); err != nil {
		return fmt.Errorf("%s: %w", textInitFailure, err)
	}

	ops, endOps := newOperations(ctx)
	defer endOps()
	daemon, err := start(ctx, ops, d, log)
	if err != nil {
		return fmt.Errorf("%s: %w", textInitFailure, err)
	}
	return daemon.serve(ctx, ops, endOps)
}

// operations is the group of goroutines that call EC2 and the kernel concurrently with the
// owner. They outlive Run's context by at most drainGrace.
type operations struct {
	ctx    context.Context // of all; ends when the daemon no longer waits for them
	group  sync.WaitGroup
	mu     sync.Mutex
	closed bool // guarded by mu
}

func newOperations(ctx context.Context) (*operations, context.CancelFunc) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	return &operations{ctx: ctx}, end
}

// spawn starts a goroutine that wait waits for, or none once wait was called.
func (o *operations) spawn(op func(context.Context)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.group.Go(func() { op(o.ctx) })
	}
}

// wait lets no more goroutines start and waits for those that did. Without the former, one that
// ends and causes another, by a message to the owner, could start it while the last one ends:
// a WaitGroup panics when it grows from zero under a Wait.
func (o *operations) wait() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.group.Wait()
}

// reportProblems logs settings that are not used as written, and fails if any of them
// prevents the start.
func reportProblems(log *slog.Logger, problems []config.Problem) error {
	var fatal []error
	for _, p := range problems {
		if p.Fatal {
			fatal = append(fatal, errors.New(strings.TrimPrefix(p.String(), textValidation+": ")))
			continue
		}
		logProblem(log, p)
	}
	if len(fatal) > 0 {
		return fmt.Errorf("%s: %w", textValidation, errors.Join(fatal...))
	}
	return nil
}

func logProblem(log *slog.Logger, p config.Problem) {
	log.Warn("setting has a problem", slog.String(logline.KeySetting, p.Variable), slog.String(logline.KeyDetail, p.String()))
}

// daemon is everything between a finished start and the end of the process.
type daemon struct {
	deps     Deps
	log      *slog.Logger
	node     node
	owner    *owner
	recorder *recorder
	calls    *callCounts
	ec2      *vpcapi.Client // nil in IMDS-only mode
	files    *checkpoints
	images   <-chan keeper.Image
	metrics  *metrics.Metrics
	host     *hostnet.Host
	imds     *imds.Client
	api      *kubernetes // nil if none is configured
	rules    *nodeRules
	asserter *asserter
	renew    chan struct{} // signals that the RPC server's sockets must be checked
}

// serve runs the owner, the servers and the periodic readers until ctx ends, then
// drains.
func (d *daemon) serve(ctx context.Context, ops *operations, endOps context.CancelFunc) error {
	d.asserter, d.renew = d.newAsserter(), make(chan struct{}, 1)
	servers, err := d.servers(ctx, ops)
	if err != nil {
		return err
	}
	d.metrics.SetPool(d.poolGauges)
	stopOwner := make(chan struct{})
	var inner sync.WaitGroup
	inner.Go(func() { d.owner.run(stopOwner) })
	inner.Go(func() { writeCheckpoints(d.owner, d.images, d.files) })

	group, serveCtx := errgroup.WithContext(ctx)
	for _, serve := range servers {
		group.Go(func() error { return serve(serveCtx) })
	}
	for _, watch := range d.watchers() {
		group.Go(func() error {
			watch(serveCtx)
			return nil
		})
	}
	if h := d.recorder.subnets; h != nil {
		ops.spawn(func(context.Context) { h.run(serveCtx) }) // a disk that hangs does not delay the end
	}
	graceEnd := make(chan struct{})
	group.Go(func() error {
		<-serveCtx.Done()
		time.AfterFunc(opsGrace, endOps)
		time.AfterFunc(drainGrace, func() { close(graceEnd) })
		// While the servers drain, answer the ADDs that wait for the pool.
		d.owner.deliver(keeper.Terminate{})
		return nil
	})
	d.metrics.Started(time.Since(d.deps.Started), d.api.answered(), "")
	d.log.Info(textServing+" "+d.deps.Version+" on unix:"+d.grpcSocket(), slog.Duration(logline.KeyDuration, time.Since(d.deps.Started))) //nolint:sloglint // upstream's line
	err = group.Wait()

	if !endsBefore(graceEnd, ops.wait) {
		d.log.Warn("EC2 operations aborted: they took longer than the shutdown allows")
	}
	close(stopOwner)
	if !endsBefore(graceEnd, inner.Wait) {
		d.log.Error("checkpoint write aborted: the disk does not respond")
	}
	d.log.Info("drained", slog.Any(logline.KeyError, err))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// endsBefore calls wait and reports whether it returned before limit was closed. Otherwise
// wait keeps running until the process ends.
func endsBefore(limit <-chan struct{}, wait func()) bool {
	ended := make(chan struct{})
	go func() {
		wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-limit:
		return false
	}
}
