package rpcserver

import (
	"context"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// healthServer is the standard health service. "" is SERVING for as long as the process
// serves, as liveness probes use it. So is [HealthService], as in upstream, unless
// Options.Ready is set: then it says whether a pod could get an address, for readiness
// probes.
type healthServer struct {
	*health.Server
	ready func() bool // nil: always
}

func newHealthServer(ready func() bool) *healthServer {
	h := &healthServer{health.NewServer(), ready}
	h.update()
	return h
}

func (h *healthServer) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	h.update()
	return h.Server.Check(ctx, req)
}

func (h *healthServer) List(ctx context.Context, req *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	h.update()
	return h.Server.List(ctx, req)
}

// update sets the status from ready. Watch streams are notified at the next Check, which
// kubelet makes every few seconds.
func (h *healthServer) update() {
	status := healthpb.HealthCheckResponse_SERVING
	if h.ready != nil && !h.ready() {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus(HealthService, status)
}
