package ipamd

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/keeper"
	"cnictl/daemon/listen"
)

// Periods of the readers that run beside the owner, the first two as upstream's.
const (
	vpcCIDRPeriod    = 30 * time.Second
	groupsPeriod     = 30 * time.Second
	podLimitFallback = 110 // kubelet's own default
)

// watchers lists the periodic readers.
func (d *daemon) watchers() []func(context.Context) {
	out := []func(context.Context){d.watchVPCCIDRs, d.asserter.watch, d.asserter.run, d.asserter.egress.run, d.newAssertedFiles(d.asserter).run}
	if d.node.provisioning && !d.node.config.CustomNetworking {
		out = append(out, d.watchSecurityGroups)
	}
	if d.api != nil {
		out = append(out, d.api.watchers()...)
	}
	return out
}

// every calls f once per period, with jitter so that a fleet's nodes drift apart, until ctx
// ends.
func every(ctx context.Context, period func() time.Duration, f func(context.Context)) {
	for {
		p := period()
		timer := time.NewTimer(p - p/10 + rand.N(p/5+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		f(ctx)
	}
}

func constant(p time.Duration) func() time.Duration { return func() time.Duration { return p } }

// watchVPCCIDRs keeps the host's SNAT and connmark rules in line with the VPC's CIDRs. A failed
// pass is repeated at the next period even if nothing changed.
func (d *daemon) watchVPCCIDRs(ctx context.Context) {
	dirty := false
	every(ctx, constant(vpcCIDRPeriod), func(ctx context.Context) {
		in := d.rules.input()
		cidrs, err := vpcCIDRs(ctx, d.imds, in.PrimaryMAC, d.node.config.IPv6)
		if err != nil || len(cidrs) == 0 {
			d.log.Warn("VPC CIDRs not read", slog.Any(logline.KeyError, err))
			return
		}
		slices.SortFunc(cidrs, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
		known := slices.Clone(in.VPCCIDRs)
		slices.SortFunc(known, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
		if slices.Equal(cidrs, known) && !dirty {
			return
		}
		err = d.rules.setCIDRs(ctx, cidrs)
		d.metrics.ConnmarkReconcile(err)
		if dirty = err != nil; dirty {
			d.log.Error("host rules not updated to the VPC's CIDRs, will be retried", slog.Any(logline.KeyError, err))
			return
		}
		_ = d.owner.post(ctx, keeper.VPCCIDRsRead{CIDRs: cidrs}) // only fails when ctx ends
	})
}

// watchSecurityGroups keeps the keeper up to date on the primary ENI's security groups.
func (d *daemon) watchSecurityGroups(ctx context.Context) {
	every(ctx, constant(groupsPeriod), func(ctx context.Context) {
		groups, err := d.imds.SecurityGroups(ctx, d.node.identity.PrimaryMAC)
		if err != nil {
			d.log.Warn("security groups of the primary ENI not read", slog.Any(logline.KeyError, err))
			return
		}
		_ = d.owner.post(ctx, keeper.GroupsRead{Groups: groups}) // only fails when ctx ends
	})
}

// offlineMaxPods is the assumed max-pods until the Node object has been read: the published
// figure of the type, else kubelet's default.
func offlineMaxPods(instanceType string) (int, string) {
	if n, ok := maxpods.FileRule(instanceType); ok {
		return n, "instance-type"
	}
	return podLimitFallback, "default"
}

// keepServing restarts a server that ended early: introspection and metrics are never fatal.
func (d *daemon) keepServing(ctx context.Context, name string, serve func(context.Context) error) error {
	const first, most = time.Second, time.Minute
	for pause := first; ; pause = min(2*pause, most) {
		err := serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		d.log.Error("server stopped, will be restarted", slog.String(logline.KeyServer, name), slog.Any(logline.KeyError, err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// DefaultMetricsAddr is where upstream serves its metrics.
const DefaultMetricsAddr = ":61678"

func (d *daemon) serveMetrics(ctx context.Context) error {
	return d.keepServing(ctx, "metrics", func(ctx context.Context) error {
		addr := d.deps.MetricsAddr
		if addr == "" {
			addr = DefaultMetricsAddr
		}
		mux := http.NewServeMux()
		mux.Handle("/metrics", d.metrics.Handler())
		server := listen.HTTP(mux)
		var lc net.ListenConfig
		listener, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		return server.Serve(listen.Limited(listener))
	})
}
