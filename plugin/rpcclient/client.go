package rpcclient

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/cniwire"
)

const (
	// redial is the pause between two connection attempts.
	redial = 50 * time.Millisecond
	// maxText limits an error's text in bytes, so that it fits into a frame.
	maxText = cniwire.MaxFrame / 2

	userAgent = "aws-cni"
)

// Server is where a call goes and how long it may take.
type Server struct {
	Socket  string
	Dial    time.Duration // how long to wait for a server that is not listening yet
	Timeout time.Duration // for the whole call, including connecting
}

// Call makes the gRPC call for a cniwire request and returns the framed answer: the reply,
// or a cniwire.CallError.
func (s Server) Call(ctx context.Context, request []byte) []byte {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	reply, err := s.call(ctx, request)
	if err != nil {
		return cniwire.AppendCallError(nil, callError(ctx, err))
	}
	return reply
}

func (s Server) call(ctx context.Context, request []byte) ([]byte, error) {
	r, err := cniwire.DecodeRequest(request)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	conn, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	switch {
	case r.Add != nil:
		reply, err := addNetwork(ctx, conn, r.Add)
		if own, refused := wantedVersion(err); refused {
			r.Add.ClientVersion = own
			reply, err = addNetwork(ctx, conn, r.Add)
		}
		if err != nil {
			return nil, err
		}
		return cniwire.AppendAddReply(nil, reply), nil
	case r.Del != nil:
		reply, err := delNetwork(ctx, conn, r.Del)
		if own, refused := wantedVersion(err); refused {
			r.Del.ClientVersion = own
			reply, err = delNetwork(ctx, conn, r.Del)
		}
		if err != nil {
			return nil, err
		}
		return cniwire.AppendDelReply(nil, reply), nil
	}
	ok, err := notifyAgent(ctx, conn, r.Policy)
	if err != nil {
		return nil, err
	}
	return cniwire.AppendPolicyReply(nil, &cniwire.PolicyReply{Success: ok}), nil
}

// connect prepares the connection; the first call establishes it.
func (s Server) connect() (*grpc.ClientConn, error) {
	until := time.Now().Add(s.Dial)
	return grpc.NewClient("passthrough:///server",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithUserAgent(userAgent),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx, until) }),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: s.Timeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(cniwire.MaxFrame)),
	)
}

// dial retries while nothing is listening.
func (s Server) dial(ctx context.Context, until time.Time) (net.Conn, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", s.Socket)
		absent := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED)
		if !absent || time.Until(until) < redial {
			return conn, err
		}
		select {
		case <-time.After(redial):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// callError converts an error for the plugin. An expired deadline has the same text,
// whatever the call was waiting for.
func callError(ctx context.Context, err error) *cniwire.CallError {
	s := status.Convert(err)
	if s.Code() == codes.DeadlineExceeded && ctx.Err() != nil {
		s = status.New(codes.DeadlineExceeded, context.DeadlineExceeded.Error())
	}
	text := s.Err().Error()
	return &cniwire.CallError{
		Answered: s.Code() != codes.Unavailable && s.Code() != codes.DeadlineExceeded,
		Text:     text[:min(len(text), maxText)],
	}
}

// wantedVersion returns the release s in `wrong client version "<c>" (!= "<s>")`.
// Upstream's daemon refuses clients of other releases, although the protocol is the same,
// so the call is repeated with the daemon's own version.
func wantedVersion(err error) (string, bool) {
	message := status.Convert(err).Message()
	if !strings.HasPrefix(message, "wrong client version ") {
		return "", false
	}
	_, rest, _ := strings.Cut(message, `(!= "`)
	return strings.CutSuffix(rest, `")`)
}

func addNetwork(ctx context.Context, conn *grpc.ClientConn, r *cniwire.AddRequest) (*cniwire.AddReply, error) {
	m, err := cnirpc.NewCNIBackendClient(conn).AddNetwork(ctx, &cnirpc.AddNetworkRequest{
		K8S_POD_NAME: r.PodName, K8S_POD_NAMESPACE: r.PodNamespace, K8S_POD_INFRA_CONTAINER_ID: r.ContainerID,
		Netns: r.Netns, IfName: r.IfName, NetworkName: r.NetworkName, ContainerID: r.ContainerID,
		ClientVersion: r.ClientVersion, RequiresMultiNICAttachment: r.RequiresMultiNIC,
	})
	if err != nil {
		return nil, err
	}
	return &cniwire.AddReply{
		Success: m.GetSuccess(), Allocations: allocations(m.GetIPAllocationMetadata()), UseExternalSNAT: m.GetUseExternalSNAT(),
		VPCv4CIDRs: m.GetVPCv4CIDRs(), VPCv6CIDRs: m.GetVPCv6CIDRs(), PodVLANID: m.GetPodVlanId(), PodENIMAC: m.GetPodENIMAC(),
		PodENISubnetGW: m.GetPodENISubnetGW(), ParentIfIndex: m.GetParentIfIndex(), NetworkPolicyMode: m.GetNetworkPolicyMode(),
	}, nil
}

// unknownPod is part of the status of a DEL for a sandbox that upstream's daemon does not
// know.
const unknownPod = "datastore: unknown pod"

// delNetwork calls DelNetwork. If the daemon answers with the error that it does not know
// the sandbox, delNetwork returns a reply with Unknown set.
func delNetwork(ctx context.Context, conn *grpc.ClientConn, r *cniwire.DelRequest) (*cniwire.DelReply, error) {
	m, err := cnirpc.NewCNIBackendClient(conn).DelNetwork(ctx, &cnirpc.DelNetworkRequest{
		K8S_POD_NAME: r.PodName, K8S_POD_NAMESPACE: r.PodNamespace, K8S_POD_UID: r.PodUID, K8S_POD_INFRA_CONTAINER_ID: r.ContainerID,
		Reason: r.Reason, IfName: r.IfName, NetworkName: r.NetworkName, ContainerID: r.ContainerID, ClientVersion: r.ClientVersion,
	})
	switch {
	case err == nil:
	case strings.Contains(status.Convert(err).Message(), unknownPod):
		return &cniwire.DelReply{Unknown: true}, nil
	default:
		return nil, err
	}
	return &cniwire.DelReply{
		Success: m.GetSuccess(), Allocations: allocations(m.GetIPAllocationMetadata()), PodVLANID: m.GetPodVlanId(), NetworkPolicyMode: m.GetNetworkPolicyMode(),
	}, nil
}

func allocations(in []*cnirpc.IPAllocationMetadata) []cniwire.Allocation {
	var out []cniwire.Allocation
	for _, a := range in {
		out = append(out, cniwire.Allocation{IPv4: a.GetIPv4Addr(), IPv6: a.GetIPv6Addr(), Device: a.GetDeviceNumber(), RouteTable: a.GetRouteTableId()})
	}
	return out
}

// notifyAgent makes the network policy agent enforce a pod's policies or forget the pod.
func notifyAgent(ctx context.Context, conn *grpc.ClientConn, r *cniwire.PolicyRequest) (bool, error) {
	agent := cnirpc.NewNPBackendClient(conn)
	if r.Delete {
		m, err := agent.DeletePodNp(ctx, &cnirpc.DeleteNpRequest{K8S_POD_NAME: r.PodName, K8S_POD_NAMESPACE: r.PodNamespace})
		return m.GetSuccess(), err
	}
	m, err := agent.EnforceNpToPod(ctx, &cnirpc.EnforceNpRequest{
		K8S_POD_NAME: r.PodName, K8S_POD_NAMESPACE: r.PodNamespace, NETWORK_POLICY_MODE: r.Mode, InterfaceCount: r.Interfaces,
	})
	return m.GetSuccess(), err
}
