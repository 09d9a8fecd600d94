package oldipamd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"cnictl/daemon/api/cnirpc"
)

// Texts of upstream that its plugin and other programs match.
const (
	textUnknownPod = "1 error occurred:\n\t* datastore: unknown pod\n\n"
	textNoPod      = "error while trying to retrieve pod info: pods %q not found"
	textOtherUID   = "pod UID mismatch: got %s, expected %s"
	textVersion    = "wrong client version %q (!= %q)"

	healthService = "grpc.health.v1.aws-node"
)

// Pod is what a pod gets. The fields that are set determine its kind.
type Pod struct {
	Allocations []*cnirpc.IPAllocationMetadata
	Branch      *Branch
	UID         string // of the pod object; checked for branch pods only
}

// Branch is the branch ENI of a pod with security groups.
type Branch struct {
	VLAN          int32
	MAC, Gateway  string
	ParentIfIndex int32
}

// Ordinary is a pod with one IPv4 address, from a secondary IP or a prefix.
func Ordinary(address string, device, table int32) Pod {
	return Pod{Allocations: []*cnirpc.IPAllocationMetadata{{IPv4Addr: address, DeviceNumber: device, RouteTableId: table}}}
}

// IPv6 is a pod with one IPv6 address, which comes from the primary ENI.
func IPv6(address string) Pod {
	return Pod{Allocations: []*cnirpc.IPAllocationMetadata{{IPv6Addr: address, RouteTableId: 254}}}
}

// TwoNICs is a pod with an address on each of two network cards.
func TwoNICs(first, second string) Pod {
	return Pod{Allocations: []*cnirpc.IPAllocationMetadata{
		{IPv4Addr: first, RouteTableId: 254}, {IPv4Addr: second, DeviceNumber: 1, RouteTableId: 10101},
	}}
}

// BranchPod is a pod whose address is on a branch ENI.
func BranchPod(address, uid string, b Branch) Pod {
	return Pod{Allocations: []*cnirpc.IPAllocationMetadata{{IPv4Addr: address, DeviceNumber: -1}}, Branch: &b, UID: uid}
}

// Options configure a Daemon.
type Options struct {
	Socket string
	// Version makes the daemon refuse clients of other versions, as upstream does; if empty,
	// it refuses none.
	Version           string
	NetworkPolicyMode string
	PodENI            bool // ENABLE_POD_ENI: pods are read from the API server
}

// Sandbox is the key of the addresses that the daemon has assigned.
type Sandbox struct{ Network, ContainerID, IfName string }

// Daemon is a running simulation of upstream's daemon.
type Daemon struct {
	opts   Options
	server *grpc.Server
	served chan struct{}

	mu   sync.Mutex
	pods map[string]Pod // by namespace/name: the objects in the API server
	held map[Sandbox][]*cnirpc.IPAllocationMetadata
	adds []*cnirpc.AddNetworkRequest
	dels []*cnirpc.DelNetworkRequest
}

// Start listens, with the file mode of upstream's socket.
func Start(o Options) (*Daemon, error) {
	if err := os.MkdirAll(filepath.Dir(o.Socket), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(o.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove leftover socket: %w", err)
	}
	l, err := net.Listen("unix", o.Socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the plugin: %w", err)
	}
	if err := os.Chmod(o.Socket, 0o660); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	d := &Daemon{
		opts: o, server: grpc.NewServer(grpc.WaitForHandlers(true)), served: make(chan struct{}),
		pods: map[string]Pod{}, held: map[Sandbox][]*cnirpc.IPAllocationMetadata{},
	}
	cnirpc.RegisterCNIBackendServer(d.server, &cniBackend{daemon: d})
	cnirpc.RegisterConfigServerBackendServer(d.server, &configBackend{daemon: d})
	h := health.NewServer()
	h.SetServingStatus(healthService, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(d.server, h)
	reflection.Register(d.server)
	go func() {
		defer close(d.served)
		_ = d.server.Serve(l) // until Close
	}()
	return d, nil
}

// Close stops the daemon immediately.
func (d *Daemon) Close() {
	d.server.Stop()
	<-d.served
}

// SetPod sets what a pod gets at its ADD. Other pods are refused.
func (d *Daemon) SetPod(namespace, name string, p Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pods[namespace+"/"+name] = p
}

// RemovePod deletes the pod's object; its addresses remain assigned.
func (d *Daemon) RemovePod(namespace, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pods, namespace+"/"+name)
}

// Held returns the addresses that sandboxes hold, except those of branch pods, which belong
// to the VPC resource controller.
func (d *Daemon) Held() map[Sandbox][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[Sandbox][]string{}
	for s, all := range d.held {
		for _, a := range all {
			out[s] = append(out[s], a.GetIPv4Addr()+a.GetIPv6Addr())
		}
	}
	return out
}

// Adds returns all AddNetwork requests so far.
func (d *Daemon) Adds() []*cnirpc.AddNetworkRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*cnirpc.AddNetworkRequest(nil), d.adds...)
}

// Dels returns all DelNetwork requests so far.
func (d *Daemon) Dels() []*cnirpc.DelNetworkRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*cnirpc.DelNetworkRequest(nil), d.dels...)
}

func (d *Daemon) checkVersion(client string) error {
	if d.opts.Version == "" || client == d.opts.Version {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, textVersion, client, d.opts.Version)
}

type cniBackend struct {
	cnirpc.UnimplementedCNIBackendServer
	daemon *Daemon
}

func (b *cniBackend) AddNetwork(_ context.Context, r *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) {
	d := b.daemon
	d.mu.Lock()
	defer d.mu.Unlock()
	d.adds = append(d.adds, r)
	if err := d.checkVersion(r.GetClientVersion()); err != nil {
		return nil, err
	}
	key := Sandbox{r.GetNetworkName(), r.GetContainerID(), r.GetIfName()}
	pod, known := d.pods[r.GetK8S_POD_NAMESPACE()+"/"+r.GetK8S_POD_NAME()]
	if !known || key.Network == "" || key.ContainerID == "" || key.IfName == "" {
		return &cnirpc.AddNetworkReply{}, nil
	}
	reply := &cnirpc.AddNetworkReply{
		Success: true, IPAllocationMetadata: pod.Allocations, VPCv4CIDRs: []string{"10.0.0.0/16"}, NetworkPolicyMode: d.opts.NetworkPolicyMode,
	}
	if len(pod.Allocations) > 1 && !r.GetRequiresMultiNICAttachment() {
		reply.IPAllocationMetadata = pod.Allocations[:1]
	}
	if br := pod.Branch; br != nil {
		reply.PodVlanId, reply.PodENIMAC, reply.PodENISubnetGW, reply.ParentIfIndex = br.VLAN, br.MAC, br.Gateway, br.ParentIfIndex
		return reply, nil
	}
	d.held[key] = reply.GetIPAllocationMetadata()
	return reply, nil
}

func (b *cniBackend) DelNetwork(_ context.Context, r *cnirpc.DelNetworkRequest) (*cnirpc.DelNetworkReply, error) {
	d := b.daemon
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dels = append(d.dels, r)
	if err := d.checkVersion(r.GetClientVersion()); err != nil {
		return nil, err
	}
	key := Sandbox{r.GetNetworkName(), r.GetContainerID(), r.GetIfName()}
	reply := &cnirpc.DelNetworkReply{Success: true, NetworkPolicyMode: d.opts.NetworkPolicyMode}
	if held, ok := d.held[key]; ok {
		delete(d.held, key)
		reply.IPAllocationMetadata = held
		return reply, nil
	}
	if !d.opts.PodENI {
		return nil, status.Error(codes.Unknown, textUnknownPod)
	}
	pod, there := d.pods[r.GetK8S_POD_NAMESPACE()+"/"+r.GetK8S_POD_NAME()]
	switch {
	case !there:
		return nil, status.Errorf(codes.Unknown, textNoPod, r.GetK8S_POD_NAME())
	case pod.UID != r.GetK8S_POD_UID():
		return nil, status.Errorf(codes.Unknown, textOtherUID, r.GetK8S_POD_UID(), pod.UID)
	case pod.Branch == nil:
		return nil, status.Error(codes.Unknown, textUnknownPod)
	}
	reply.PodVlanId, reply.IPAllocationMetadata = pod.Branch.VLAN, pod.Allocations
	return reply, nil
}

type configBackend struct {
	cnirpc.UnimplementedConfigServerBackendServer
	daemon *Daemon
}

func (b *configBackend) GetNetworkPolicyConfigs(context.Context, *emptypb.Empty) (*cnirpc.NetworkPolicyAgentConfigReply, error) {
	return &cnirpc.NetworkPolicyAgentConfigReply{NetworkPolicyMode: b.daemon.opts.NetworkPolicyMode}, nil
}
