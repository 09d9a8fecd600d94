package rpcserver

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
)

// newGRPC returns a server with upstream's services: CNIBackend, ConfigServerBackend,
// health under two names, reflection v1 and v1alpha.
func (s *Server) newGRPC() *grpc.Server {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(cniwire.MaxFrame),
		grpc.ConnectionTimeout(5*time.Second),
		grpc.UnaryInterceptor(bounded(make(slots, s.opts.MaxRequests))),
		grpc.WaitForHandlers(true),
	)
	cnirpc.RegisterCNIBackendServer(g, &cniBackend{server: s})
	cnirpc.RegisterConfigServerBackendServer(g, &configBackend{backend: s.opts.Backend})
	healthpb.RegisterHealthServer(g, newHealthServer(s.opts.Ready))
	reflection.Register(g)
	return g
}

// bounded makes a request wait for a slot. Health checks do not wait: a daemon whose ADDs
// all wait for EC2 is busy, not dead.
func bounded(s slots) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if info.FullMethod == healthpb.Health_Check_FullMethodName {
			return handler(ctx, req)
		}
		if !s.acquire(ctx) {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		defer s.release()
		return handler(ctx, req)
	}
}

type cniBackend struct {
	cnirpc.UnimplementedCNIBackendServer
	server *Server
}

func (b *cniBackend) AddNetwork(ctx context.Context, req *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) {
	crashpoint.Here(crashpoint.GRPCRequestRead)
	b.server.noteVersion(req.GetClientVersion())
	reply := b.server.opts.Backend.Add(ctx, &cniwire.AddRequest{
		PodName:          req.GetK8S_POD_NAME(),
		PodNamespace:     req.GetK8S_POD_NAMESPACE(),
		ContainerID:      req.GetContainerID(),
		IfName:           req.GetIfName(),
		NetworkName:      req.GetNetworkName(),
		Netns:            req.GetNetns(),
		ClientVersion:    req.GetClientVersion(),
		RequiresMultiNIC: req.GetRequiresMultiNICAttachment(),
	})
	crashpoint.Here(crashpoint.BeforeGRPCReply)
	return &cnirpc.AddNetworkReply{
		Success:              reply.Success,
		IPAllocationMetadata: allocations(reply.Allocations),
		UseExternalSNAT:      reply.UseExternalSNAT,
		VPCv4CIDRs:           reply.VPCv4CIDRs,
		VPCv6CIDRs:           reply.VPCv6CIDRs,
		PodVlanId:            reply.PodVLANID,
		PodENIMAC:            reply.PodENIMAC,
		PodENISubnetGW:       reply.PodENISubnetGW,
		ParentIfIndex:        reply.ParentIfIndex,
		NetworkPolicyMode:    reply.NetworkPolicyMode,
		Cause:                reply.Cause,
		Detail:               reply.Detail,
		Transient:            reply.Transient,
	}, nil
}

func (b *cniBackend) DelNetwork(ctx context.Context, req *cnirpc.DelNetworkRequest) (*cnirpc.DelNetworkReply, error) {
	crashpoint.Here(crashpoint.GRPCRequestRead)
	b.server.noteVersion(req.GetClientVersion())
	reply := b.server.opts.Backend.Del(ctx, &cniwire.DelRequest{
		PodName:       req.GetK8S_POD_NAME(),
		PodNamespace:  req.GetK8S_POD_NAMESPACE(),
		PodUID:        req.GetK8S_POD_UID(),
		ContainerID:   req.GetContainerID(),
		IfName:        req.GetIfName(),
		NetworkName:   req.GetNetworkName(),
		Reason:        req.GetReason(),
		ClientVersion: req.GetClientVersion(),
	})
	if reply.Unknown {
		return nil, status.Error(codes.Unknown, textUnknownPod)
	}
	crashpoint.Here(crashpoint.BeforeGRPCReply)
	return &cnirpc.DelNetworkReply{
		Success:              reply.Success,
		IPAllocationMetadata: allocations(reply.Allocations),
		PodVlanId:            reply.PodVLANID,
		NetworkPolicyMode:    reply.NetworkPolicyMode,
		Cause:                reply.Cause,
		Detail:               reply.Detail,
	}, nil
}

func allocations(in []cniwire.Allocation) []*cnirpc.IPAllocationMetadata {
	out := make([]*cnirpc.IPAllocationMetadata, len(in))
	for i, a := range in {
		out[i] = &cnirpc.IPAllocationMetadata{IPv4Addr: a.IPv4, IPv6Addr: a.IPv6, DeviceNumber: a.Device, RouteTableId: a.RouteTable}
	}
	return out
}

type configBackend struct {
	cnirpc.UnimplementedConfigServerBackendServer
	backend Backend
}

func (b *configBackend) GetNetworkPolicyConfigs(context.Context, *emptypb.Empty) (*cnirpc.NetworkPolicyAgentConfigReply, error) {
	c := b.backend.PolicyConfig()
	return &cnirpc.NetworkPolicyAgentConfigReply{
		NetworkPolicyMode: c.Mode,
		MultiNICEnabled:   c.MultiNIC,
		NodeIPv4:          c.NodeIPv4,
		NodeIPv6:          c.NodeIPv6,
		InstanceID:        c.InstanceID,
		Region:            c.Region,
	}, nil
}
