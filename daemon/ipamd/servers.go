package ipamd

import (
	"context"

	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/rpcserver"
)

func (d *daemon) policyConfig() rpcserver.PolicyConfig {
	n := d.owner.node
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
		in, err := introspectserver.New(introspectserver.Options{Addr: d.deps.Config.IntrospectionAddr, Source: d, Log: d.log})
		if err != nil {
			return nil, err
		}
		out = append(out, func(ctx context.Context) error { return d.keepServing(ctx, "introspection", in.Serve) })
	}
	return out, nil
}
