package ipamd

import (
	"context"
	"net/netip"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/policyagent"
	"cnictl/daemon/internal/rpcserver"
	"cnictl/daemon/keeper"
)

func (d *daemon) policyConfig() rpcserver.PolicyConfig {
	n := d.node
	out := rpcserver.PolicyConfig{
		Mode: n.config.NetworkPolicyMode, MultiNIC: n.config.MultiNIC, InstanceID: n.identity.InstanceID, Region: n.identity.Region,
	}
	if n.config.IPv6 {
		out.NodeIPv6 = addressText(n.identity.PrimaryIPv6)
	} else {
		out.NodeIPv4 = addressText(n.identity.PrimaryIPv4)
	}
	return out
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (d *daemon) grpcSocket() string {
	if d.deps.GRPCSocket != "" {
		return d.deps.GRPCSocket
	}
	return cniwire.GRPCSocket
}

// servers lists the servers to run. The RPC server is fatal if it cannot listen; the others
// keep trying, as in upstream.
func (d *daemon) servers(ctx context.Context, ops *operations) ([]func(context.Context) error, error) {
	b, err := d.backend(ctx, ops)
	if err != nil {
		return nil, err
	}
	rpc := rpcserver.New(rpcserver.Options{
		GRPCSocket: d.grpcSocket(), LeanSocket: d.deps.LeanSocket,
		Backend: b,
		Log:     d.log, Version: d.deps.Version, Ready: d.readiness(),
		Renew: d.renew, Renewed: func(path string) { d.asserter.fileBack(objectSocket, path) },
	})
	out := []func(context.Context) error{rpc.Serve}
	if !d.deps.Config.MetricsOff {
		out = append(out, d.serveMetrics)
	}
	if !d.deps.Config.IntrospectionOff {
		if _, err := d.introspection(); err != nil {
			return nil, err // a bad address: a retry would not help
		}
		out = append(out, func(ctx context.Context) error { return d.keepServing(ctx, "introspection", d.introspect) })
	}
	return out, nil
}

// introspect serves introspection once: a Server cannot be restarted, so each attempt creates
// a new one.
func (d *daemon) introspect(ctx context.Context) error {
	server, err := d.introspection()
	if err != nil {
		return err
	}
	return server.Serve(ctx)
}

func (d *daemon) introspection() (*introspectserver.Server, error) {
	return introspectserver.New(introspectserver.Options{
		Addr: d.deps.Config.IntrospectionAddr, Source: d, Log: d.log,
		Events: d.recorder.feed, Failures: d.recorder.failures, Pool: d.pool, ObservePod: d.host.ObservePod, ReadLog: d.readLog,
		SubnetHistory: d.recorder.subnets.served(),
	})
}

// readLog reads the daemon's own log for /v1/logs.
func (d *daemon) readLog(ctx context.Context, q introspect.LogQuery) (introspect.NodeLogs, error) {
	return logging.Tail(ctx, d.deps.Config.LogFile, q)
}

// backend creates the [backend], which answers requests until ctx ends, and those it has a
// while longer.
func (d *daemon) backend(ctx context.Context, ops *operations) (*backend, error) {
	c := d.node.config
	b := &backend{
		owner: d.owner, log: d.log, wait: c.AddWait, policy: d.policyConfig(), kubernetes: d.api, annotate: c.AnnotatePodIP && d.api != nil,
		asserter: d.asserter, beside: ops.spawn, withdrawals: make(chan struct{}, withdrawalsMost),
	}
	b.onEnd = func(f func()) func() bool { return context.AfterFunc(ctx, f) }
	if d.branchPods() {
		b.branches = &branches{
			kubernetes: d.api, owner: d.owner, host: d.host, log: d.log, ipv6: c.IPv6, mode: c.NetworkPolicyMode, snat: c.ExternalSNAT,
		}
	}
	if !policyOn(c.NetworkPolicyMode) {
		return b, nil
	}
	agent, err := policyagent.New(d.deps.PolicySocket)
	if err != nil {
		return nil, err
	}
	b.policies = newPolicies(agent, d.owner, d.log, d.metrics, c.NetworkPolicyMode, d.host.PodLinks)
	ops.spawn(func(ops context.Context) { b.policies.sendDeletions(ops, ctx) })
	return b, nil
}

// readiness returns the check of the readiness probe; nil to check only that the process serves.
func (d *daemon) readiness() func() bool {
	if !d.node.config.ReadyWithAddresses {
		return nil
	}
	return func() bool {
		ready, ok := ask(d.owner, func(k *keeper.Keeper, now time.Time) bool { return k.Ready(now) })
		return ok && ready
	}
}
