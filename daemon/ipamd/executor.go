package ipamd

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// linkWaitLimit is how long the link of an attached ENI may take to appear.
const linkWaitLimit = 2 * time.Minute

// executor carries out the keeper's tasks concurrently with it, each in its own goroutine. It
// implements [keeper.Calls] for all of them: EC2, the node and time.
type executor struct {
	keeper.EC2
	*hostnet.Host
	*imds.Client
	mtu  int
	ipv6 bool // of an IPv6 cluster

	spawn func(func(context.Context)) // starts a goroutine that Run waits for and whose context Run ends
	post  func(keeper.Message)
	// podsWait reports whether ADDs wait for the pool; any goroutine may ask.
	podsWait func() bool
	metrics  *metrics.Metrics
	log      *slog.Logger
}

// Begin starts a task.
func (x *executor) Begin(t keeper.Task) {
	done := func() {}
	if _, ok := t.(keeper.ObserveTask); ok {
		done = x.metrics.Action(metrics.FnReconcilePool)
	}
	x.spawn(func(ctx context.Context) {
		defer done()
		switch {
		case keeper.Urgent(t):
			ctx = vpcapi.Urgent(ctx)
		case keeper.Grows(t):
			ctx = vpcapi.UrgentWhile(ctx, x.podsWait)
		}
		keeper.Run(ctx, x, t)
	})
}

// Post hands the keeper the result of a step.
func (x *executor) Post(m keeper.Message) { x.post(m) }

// Now returns the current time.
func (x *executor) Now() time.Time { return time.Now() }

// Sleep waits. It fails when the context ends.
func (x *executor) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Jitter returns a number in [0, n).
func (x *executor) Jitter(n time.Duration) time.Duration { return jitter(n) }

// jitter spreads nodes over time. It need not be unpredictable.
func jitter(n time.Duration) time.Duration { return rand.N(n) }

// Lasting returns a context that outlives ctx by at most limit.
func (x *executor) Lasting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// SetUpENI waits for an ENI's link and puts its routes into the kernel.
func (x *executor) SetUpENI(ctx context.Context, eni ipam.ENI) error {
	return x.setUp(ctx, eni, linkWaitLimit)
}

// setUp distinguishes a missing link from every other failure of this host.
func (x *executor) setUp(ctx context.Context, eni ipam.ENI, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := x.SetupENI(ctx, eniInput(eni, x.ipv6, x.mtu))
	var missing *hostnet.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return &keeper.Failure{Cause: cause.ENILinkMissing, Err: err}
	}
	return &keeper.Failure{Cause: cause.Internal, Err: err}
}

func eniInput(eni ipam.ENI, ipv6 bool, mtu int) rules.ENIInput {
	return rules.ENIInput{
		IPv6: ipv6, MAC: eni.MAC, Card: eni.Card, Device: eni.Device, PrimaryIP: eni.PrimaryIP, Subnet: eni.Subnet,
		MTU: mtu, RouteTable: eni.RouteTable, Trunk: eni.Trunk,
	}
}

// startLinkWait bounds the wait for links of ENIs that were attached before the daemon
// started: they exist unless the attach is seconds old.
const startLinkWait = time.Second

// SetUpFound sets up all ENIs in parallel.
func (x *executor) SetUpFound(ctx context.Context, enis []ipam.ENI) []error {
	failed := make([]error, len(enis))
	var group errgroup.Group
	for i, e := range enis {
		group.Go(func() error {
			failed[i] = x.setUp(ctx, e, startLinkWait)
			return nil
		})
	}
	_ = group.Wait() // its functions return nil
	return failed
}
