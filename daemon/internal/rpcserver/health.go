package rpcserver

import (
	"context"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// healthServer is the standard health service. "" is SERVING for as long as the process
// serves, because a liveness probe asks for it. [HealthService] is too, as in upstream,
// unless Options.Ready makes it say whether a pod could get an address: that is for
// readiness probes.
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

// update asks whether addresses can be given. Streams of Watch are notified with the next
// Check, which kubelet makes every few seconds.
func (h *healthServer) update() {
	status := healthpb.HealthCheckResponse_SERVING
	if h.ready != nil && !h.ready() {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus(HealthService, status)
}
