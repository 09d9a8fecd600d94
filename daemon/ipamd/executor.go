package ipamd

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
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
	"cnictl/daemon/resync"
)

// linkWaitLimit is how long the link of an attached ENI may take to appear.
const linkWaitLimit = 2 * time.Minute

// executor carries out the keeper's tasks beside it, each in a goroutine of its own.
type executor struct {
	spawn func(func(context.Context)) // starts a goroutine that Run owns and whose context Run ends
	ec2   keeper.EC2
	host  hostCalls
	post  func(keeper.Message)
	// podsWait reports that ADDs wait for the pool; any goroutine may ask.
	podsWait func() bool
	metrics  *metrics.Metrics
}

func (x *executor) begin(t keeper.Task) {
	done := func() {}
	if _, look := t.(keeper.LookTask); look {
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
		keeper.Carry(ctx, x.calls(), t, x.post)
	})
}

func (x *executor) calls() *calls { return &calls{x.ec2, x.host, x.post} }

// calls is EC2, the node and time as tasks see them.
type calls struct {
	keeper.EC2
	hostCalls
	post func(keeper.Message)
}

func (c *calls) Now() time.Time { return time.Now() }

func (c *calls) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *calls) Chance(n time.Duration) time.Duration { return chance(n) }

// chance spreads nodes over time. It need not be unpredictable.
func chance(n time.Duration) time.Duration { return rand.N(n) }

func (c *calls) Both(f, g func() error) error {
	var group errgroup.Group
	group.Go(f)
	group.Go(g)
	return group.Wait()
}

func (c *calls) Lasting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

func (c *calls) Note(what keeper.Note, about ipam.ENIID, err error) {
	c.post(keeper.Noted{What: what, ENI: about, Err: err})
}

// hostCalls is the node as tasks see it: what hostnet and imds do not say in their words.
type hostCalls struct {
	*hostnet.Host
	*imds.Client
	mtu  int
	ipv6 bool // of an IPv6 cluster
}

func (h hostCalls) SetUpENI(ctx context.Context, eni ipam.ENI) error {
	return h.setUp(ctx, eni, linkWaitLimit)
}

// setUp distinguishes a link that does not appear from every other failure of this host.
func (h hostCalls) setUp(ctx context.Context, eni ipam.ENI, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := h.SetupENI(ctx, eniInput(eni, h.ipv6, h.mtu))
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

func (h hostCalls) PodRoutes(ctx context.Context) ([]resync.PodRoute, error) {
	routes, err := h.Host.PodRoutes(ctx)
	return podRoutes(routes), err
}

// podRoutes lists the routes that lead to a link: rules alone keep no address.
func podRoutes(all []hostnet.PodRoute) []resync.PodRoute {
	var out []resync.PodRoute
	for _, r := range all {
		if r.HostLink != "" {
			out = append(out, resync.PodRoute{Address: r.Address, HostLink: r.HostLink})
		}
	}
	return out
}

func (h hostCalls) PodLinks(ctx context.Context) ([]string, error) {
	links, err := h.Host.PodLinks(ctx)
	return linkNames(links), err
}

func linkNames(links map[string]int) []string { return slices.Sorted(maps.Keys(links)) }
