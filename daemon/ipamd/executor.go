package ipamd

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/procedure"
	"cnictl/daemon/resync"
)

// linkWaitLimit is how long the link of an attached ENI may take to appear.
const linkWaitLimit = 2 * time.Minute

// executor carries out the keeper's tasks beside it, each in a goroutine of its own.
type executor struct {
	spawn  func(func(context.Context)) // starts a goroutine that Run owns and whose context Run ends
	source source
	ec2    *vpcapi.Client // nil: IMDS-only mode, in which no task asks EC2 for a change
	imds   *imds.Client
	host   *hostnet.Host
	log    *slog.Logger
	post   func(keeper.Message)
	// podsWait reports that ADDs wait for the pool; any goroutine may ask.
	podsWait func() bool
	metrics  *metrics.Metrics
	mtu      int
	ipv6     bool // of an IPv6 cluster
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
		keeper.Carry(&calls{executor: x, ctx: ctx}, t, x.post)
	})
}

// calls is EC2, the node and time as one task sees them.
type calls struct {
	*executor
	// ctx ends when the task should: procedures are pure and know no contexts.
	ctx context.Context //nolint:containedctx // see above
}

func (c *calls) CreateENI(s procedure.CreateENI) (resync.ENI, error) {
	e, err := c.ec2.CreateENI(c.ctx, vpcapi.CreateENI{
		SubnetID: s.SubnetID, SecurityGroups: s.SecurityGroups, IPs: s.IPs, Prefixes: s.Prefixes, IPv6: s.IPv6,
		ConnTrack: s.ConnTrack, Token: s.Token, CreatedAt: s.At,
	})
	return e, ec2Failure(err)
}

func (c *calls) AttachENI(id ipam.ENIID, card, device int) (string, error) {
	attachment, err := c.ec2.AttachENI(c.ctx, id, card, device)
	return attachment, ec2Failure(err)
}

func (c *calls) SetDeleteOnTermination(id ipam.ENIID, attachment string) error {
	return ec2Failure(c.ec2.SetDeleteOnTermination(c.ctx, id, attachment))
}

func (c *calls) DetachENI(attachment string) error {
	return ec2Failure(c.ec2.DetachENI(c.ctx, attachment))
}

func (c *calls) DeleteENI(id ipam.ENIID) error { return ec2Failure(c.ec2.DeleteENI(c.ctx, id)) }

func (c *calls) AssignIPs(id ipam.ENIID, n int) ([]netip.Addr, error) {
	addrs, err := c.ec2.AssignIPs(c.ctx, id, n)
	return addrs, ec2Failure(err)
}

func (c *calls) AssignPrefixes(id ipam.ENIID, n int) ([]netip.Prefix, error) {
	prefixes, err := c.ec2.AssignPrefixes(c.ctx, id, n)
	return prefixes, ec2Failure(err)
}

func (c *calls) AssignIPv6Prefix(id ipam.ENIID) (netip.Prefix, error) {
	p, err := c.ec2.AssignIPv6Prefix(c.ctx, id)
	return p, ec2Failure(err)
}

func (c *calls) SetSecurityGroups(id ipam.ENIID, groups []string) error {
	return ec2Failure(c.ec2.SetSecurityGroups(c.ctx, id, groups))
}

func (c *calls) Unassign(id ipam.ENIID, cidrs []netip.Prefix) error {
	err := c.ec2.Unassign(c.ctx, id, cidrs)
	var partly *vpcapi.PartlyUnassigned
	if errors.As(err, &partly) {
		return &procedure.PartlyUnassigned{Gone: partly.Gone, Err: ec2Failure(partly.Err)}
	}
	return ec2Failure(err)
}

func (c *calls) DescribeENIs(ids []ipam.ENIID) ([]resync.ENI, error) {
	enis, err := c.source.describeENIs(c.ctx, ids)
	return enis, ec2Failure(err)
}

func (c *calls) DescribeSubnets() ([]resync.Subnet, error) {
	subnets, err := c.source.describeSubnets(c.ctx)
	return subnets, ec2Failure(err)
}

func (c *calls) DescribeLeaked() ([]resync.ENI, error) {
	enis, err := c.ec2.DescribeLeaked(c.ctx)
	return enis, ec2Failure(err)
}

func (c *calls) TagENI(id ipam.ENIID, have map[string]string) error {
	return ec2Failure(c.ec2.TagENI(c.ctx, id, have))
}

func (c *calls) TagCreated(id ipam.ENIID, now time.Time) error {
	return ec2Failure(c.ec2.TagCreated(c.ctx, id, now))
}

func (c *calls) Interfaces() ([]resync.Interface, error) { return c.imds.Interfaces(c.ctx) }

func (c *calls) SetUpENI(eni ipam.ENI) error {
	ctx, cancel := context.WithTimeout(c.ctx, linkWaitLimit)
	defer cancel()
	return c.setUp(ctx, eni)
}

func (x *executor) setUp(ctx context.Context, eni ipam.ENI) error {
	return hostFailure(x.host.SetupENI(ctx, eniInput(eni, x.ipv6, x.mtu)))
}

func eniInput(eni ipam.ENI, ipv6 bool, mtu int) rules.ENIInput {
	return rules.ENIInput{
		IPv6: ipv6, MAC: eni.MAC, Card: eni.Card, Device: eni.Device, PrimaryIP: eni.PrimaryIP, Subnet: eni.Subnet,
		MTU: mtu, RouteTable: eni.RouteTable, Trunk: eni.Trunk,
	}
}

func (c *calls) TearDownENI(primary netip.Addr) error { return c.host.TeardownENI(c.ctx, primary) }

func (c *calls) PodRoutes() ([]resync.PodRoute, error) {
	routes, err := c.host.PodRoutes(c.ctx)
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

func (c *calls) PodLinks() ([]string, error) {
	links, err := c.host.PodLinks(c.ctx)
	return linkNames(links), err
}

func linkNames(links map[string]int) []string {
	out := make([]string, 0, len(links))
	for name := range links {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (c *calls) DropPod(a netip.Addr) error { return c.host.DropPod(c.ctx, a) }

func (c *calls) Now() time.Time { return time.Now() }

func (c *calls) Sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
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

func (c *calls) Lasting(limit time.Duration) (procedure.Calls, func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), limit)
	return &calls{executor: c.executor, ctx: ctx}, cancel
}

func (c *calls) Note(what procedure.Note, about ipam.ENIID, err error) {
	c.post(keeper.Noted{What: what, ENI: about, Err: err})
}

// ec2Failure says in the words of procedures what EC2 answered.
func ec2Failure(err error) error {
	if err == nil {
		return nil
	}
	return &procedure.Failure{
		Cause: vpcapi.Cause(err), NotFound: vpcapi.IsNotFound(err), AddressLimit: vpcapi.IsAddressLimit(err),
		Unanswered: vpcapi.IsUnanswered(err), Err: vpcapi.Brief(err),
	}
}

// hostFailure tells a link that did not appear from every other failure of this host.
func hostFailure(err error) error {
	var missing *hostnet.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return &procedure.Failure{Cause: cause.ENILinkMissing, Err: err}
	}
	return &procedure.Failure{Cause: cause.Internal, Err: err}
}

// startLinkWait bounds the wait for links of ENIs that were attached before the
// daemon started: they are there unless the attach is seconds old.
const startLinkWait = time.Second

// setUpAll puts the routes of every secondary ENI into the kernel. An ENI whose
// routes cannot be made comes late: it stays out of the pool until they are
// (spec/ipamd.md §13.1 row 13), and serving does not wait for it.
func (x *executor) setUpAll(ctx context.Context, managed []resync.Attached) (usable, late []resync.Attached) {
	failed := make([]error, len(managed))
	var group errgroup.Group
	for i, m := range managed {
		if m.ENI.Primary {
			continue
		}
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, startLinkWait)
			defer cancel()
			failed[i] = x.setUp(ctx, m.ENI)
			return nil
		})
	}
	_ = group.Wait() // its functions return nil
	for i, m := range managed {
		if failed[i] != nil {
			x.log.Warn("ENI not set up at start, will be retried", slog.String(logline.KeyENI, string(m.ENI.ID)), slog.Any(logline.KeyError, failed[i]))
			late = append(late, m)
			continue
		}
		usable = append(usable, m)
	}
	return usable, late
}

// rehome leads the traffic of living pods into the table of their ENI where a rule is
// missing or another table was meant.
func (x *executor) rehome(ctx context.Context, assignments []ipam.Assignment, routes []hostnet.PodRoute) {
	seen := make(map[netip.Addr]hostnet.PodRoute, len(routes))
	for _, r := range routes {
		seen[r.Address] = r
	}
	for _, a := range assignments {
		r, routed := seen[a.Address]
		if !routed || a.ENI == "" || (r.ToRule && r.Table == a.RouteTable) {
			continue
		}
		if err := x.host.RehomePod(ctx, a.Address, a.RouteTable); err != nil {
			x.log.Warn("rules of a running pod not restored", slog.String(logline.KeyIP, a.Address.String()), slog.Any(logline.KeyError, err))
			continue
		}
		x.log.Warn("rules of a running pod restored", slog.String(logline.KeyIP, a.Address.String()), slog.Int(logline.KeyRouteTable, a.RouteTable))
	}
}

// drop removes the rules of addresses and says why.
func (x *executor) drop(ctx context.Context, addrs []netip.Addr, why string) {
	for _, a := range addrs {
		if err := x.host.DropPod(ctx, a); err != nil {
			x.log.Warn("leftover rules not removed", slog.String(logline.KeyReason, why), slog.String(logline.KeyIP, a.String()), slog.Any(logline.KeyError, err))
			continue
		}
		x.log.Info("leftover rules removed", slog.String(logline.KeyReason, why), slog.String(logline.KeyIP, a.String()))
	}
}
