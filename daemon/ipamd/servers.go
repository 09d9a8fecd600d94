package ipamd

import (
	"context"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/rpcserver"
)

func (d *daemon) policyConfig() rpcserver.PolicyConfig {
	n := d.node
	return rpcserver.PolicyConfig{
		Mode: n.config.NetworkPolicyMode, NodeIPv4: n.identity.PrimaryIPv4.String(),
		InstanceID: n.identity.InstanceID, Region: n.identity.Region,
	}
}

func (d *daemon) grpcSocket() string {
	if d.deps.GRPCSocket != "" {
		return d.deps.GRPCSocket
	}
	return rpcserver.DefaultGRPCSocket
}

// servers lists what listens. The RPC server is fatal when it cannot; the others
// keep trying, as in the original.
func (d *daemon) servers() ([]func(context.Context) error, error) {
	rpc := rpcserver.New(rpcserver.Options{
		GRPCSocket: d.grpcSocket(), LeanSocket: d.deps.LeanSocket,
		Backend: &backend{owner: d.owner, wait: d.deps.Config.AddWait, policy: d.policyConfig()},
		Log:     d.log, Version: d.deps.Version,
	})
	out := []func(context.Context) error{rpc.Serve}
	if !d.deps.Config.MetricsOff {
		out = append(out, d.serveMetrics)
	}
	if !d.deps.Config.IntrospectionOff {
		if _, err := d.introspection(); err != nil {
			return nil, err // of the address: trying again would not help
		}
		out = append(out, func(ctx context.Context) error { return d.keepServing(ctx, "introspection", d.introspect) })
	}
	return out, nil
}

// introspect serves introspection once: a Server cannot be started again, so each
// round has its own.
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
	})
}

// readLog reads the daemon's own log for /v1/logs.
func (d *daemon) readLog(ctx context.Context, q introspect.LogQuery) (introspect.NodeLogs, error) {
	return logging.Tail(ctx, d.deps.Config.LogFile, q)
}
