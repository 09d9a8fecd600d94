package rpcserver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/emptypb"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
)

// backend answers with two functions.
type backend struct {
	add func(context.Context, *cniwire.AddRequest) *cniwire.AddReply
	del func(context.Context, *cniwire.DelRequest) *cniwire.DelReply

	policy func(context.Context, *cniwire.PolicyRequest) *cniwire.PolicyReply
}

func (b backend) Add(ctx context.Context, r *cniwire.AddRequest) *cniwire.AddReply {
	return b.add(ctx, r)
}
func (b backend) Del(ctx context.Context, r *cniwire.DelRequest) *cniwire.DelReply {
	return b.del(ctx, r)
}
func (b backend) Policy(ctx context.Context, r *cniwire.PolicyRequest) *cniwire.PolicyReply {
	return b.policy(ctx, r)
}
func (b backend) PolicyConfig() PolicyConfig {
	return PolicyConfig{Mode: "standard", MultiNIC: true, NodeIPv4: "10.0.0.1", InstanceID: "i-1", Region: "us-west-2"}
}

// running is a server with its sockets in its own short directory.
type running struct {
	grpc, lean string
	stop       context.CancelFunc
	done       chan error
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rpc") // t.TempDir may exceed the 107 bytes of a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, b Backend, change ...func(*Options)) *running {
	t.Helper()
	dir := filepath.Join(tempDir(t), "aws-node")
	opts := Options{
		GRPCSocket: filepath.Join(dir, "ipamd.sock"), LeanSocket: filepath.Join(dir, "cni.sock"),
		Backend: b, Log: slog.New(slog.DiscardHandler), Version: "v1",
	}
	for _, f := range change {
		f(&opts)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{grpc: opts.GRPCSocket, lean: opts.LeanSocket, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- New(opts).Serve(ctx) }()
	t.Cleanup(func() { cancel() })
	testenv.Eventually(t, "the sockets to appear", func() bool { return exists(r.grpc) && exists(r.lean) })
	return r
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func (r *running) wait(t *testing.T) error {
	t.Helper()
	return testenv.Receive(t, "the end of Serve", r.done)
}

// dial connects like upstream's plugin.
func (r *running) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+r.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (r *running) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", r.lean)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func write(t *testing.T, conn net.Conn, b []byte) {
	t.Helper()
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

func readAdd(t *testing.T, conn net.Conn) *cniwire.AddReply {
	t.Helper()
	frame, err := cniwire.ReadFrame(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := cniwire.DecodeAddReply(frame)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func echoAdd(reply *cniwire.AddReply, got chan<- *cniwire.AddRequest) backend {
	return backend{add: func(_ context.Context, r *cniwire.AddRequest) *cniwire.AddReply {
		if got != nil {
			got <- r
		}
		return reply
	}}
}

var fullReply = cniwire.AddReply{
	Success:         true,
	Allocations:     []cniwire.Allocation{{IPv4: "10.0.1.5", Device: 2, RouteTable: 3}, {IPv6: "fd00::5", Device: -1}},
	UseExternalSNAT: true, VPCv4CIDRs: []string{"10.0.0.0/16"}, VPCv6CIDRs: []string{"fd00::/56"},
	PodVLANID: 7, PodENIMAC: "02:00:00:00:00:01", PodENISubnetGW: "10.0.1.1", ParentIfIndex: 4, NetworkPolicyMode: "strict",
	Cause: "pool-dry", Detail: "why", Transient: true,
}

func TestAdd(t *testing.T) {
	t.Parallel()
	got := make(chan *cniwire.AddRequest, 1)
	r := start(t, echoAdd(&fullReply, got))

	t.Run("gRPC", func(t *testing.T) {
		reply, err := cnirpc.NewCNIBackendClient(r.dial(t)).AddNetwork(t.Context(), &cnirpc.AddNetworkRequest{
			K8S_POD_NAME: "web-0", K8S_POD_NAMESPACE: "shop", K8S_POD_INFRA_CONTAINER_ID: "sandbox", Netns: "/run/netns/x",
			IfName: "eth0", NetworkName: "aws-cni", ContainerID: "sandbox", ClientVersion: "v0-other", RequiresMultiNICAttachment: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		wantReq := &cniwire.AddRequest{PodName: "web-0", PodNamespace: "shop", ContainerID: "sandbox", IfName: "eth0",
			NetworkName: "aws-cni", Netns: "/run/netns/x", ClientVersion: "v0-other", RequiresMultiNIC: true}
		if diff := cmp.Diff(wantReq, <-got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		want := &cnirpc.AddNetworkReply{
			Success: true, IPAllocationMetadata: []*cnirpc.IPAllocationMetadata{
				{IPv4Addr: "10.0.1.5", DeviceNumber: 2, RouteTableId: 3}, {IPv6Addr: "fd00::5", DeviceNumber: -1}},
			UseExternalSNAT: true, VPCv4CIDRs: []string{"10.0.0.0/16"}, VPCv6CIDRs: []string{"fd00::/56"},
			PodVlanId: 7, PodENIMAC: "02:00:00:00:00:01", PodENISubnetGW: "10.0.1.1", ParentIfIndex: 4, NetworkPolicyMode: "strict",
			Cause: "pool-dry", Detail: "why", Transient: true,
		}
		if diff := cmp.Diff(want, reply, protocmp.Transform()); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
	})

	t.Run("lean", func(t *testing.T) {
		conn := r.connect(t)
		req := &cniwire.AddRequest{PodName: "web-0", PodNamespace: "shop", PodUID: "u", ContainerID: "sandbox", IfName: "eth0", NetworkName: "aws-cni"}
		write(t, conn, cniwire.AppendAddRequest(nil, req))
		if diff := cmp.Diff(&fullReply, readAdd(t, conn)); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(req, <-got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the reply: %v, want end of file", err)
		}
	})
}

func TestDel(t *testing.T) {
	t.Parallel()
	got := make(chan *cniwire.DelRequest, 1)
	r := start(t, backend{del: func(_ context.Context, r *cniwire.DelRequest) *cniwire.DelReply {
		got <- r
		if r.ContainerID == "gone" {
			return &cniwire.DelReply{Unknown: true}
		}
		return &cniwire.DelReply{Success: true, Allocations: []cniwire.Allocation{{IPv4: "10.0.1.5", RouteTable: 254}}, PodVLANID: 3, NetworkPolicyMode: "none"}
	}})
	client := cnirpc.NewCNIBackendClient(r.dial(t))

	reply, err := client.DelNetwork(t.Context(), &cnirpc.DelNetworkRequest{K8S_POD_NAME: "web-0", K8S_POD_NAMESPACE: "shop",
		Reason: "PodDeleted", IfName: "eth0", NetworkName: "aws-cni", ContainerID: "sandbox", ClientVersion: "v1", K8S_POD_UID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	wantReq := &cniwire.DelRequest{PodName: "web-0", PodNamespace: "shop", PodUID: "u", ContainerID: "sandbox", IfName: "eth0",
		NetworkName: "aws-cni", Reason: "PodDeleted", ClientVersion: "v1"}
	if diff := cmp.Diff(wantReq, <-got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	want := &cnirpc.DelNetworkReply{Success: true, PodVlanId: 3, NetworkPolicyMode: "none",
		IPAllocationMetadata: []*cnirpc.IPAllocationMetadata{{IPv4Addr: "10.0.1.5", RouteTableId: 254}}}
	if diff := cmp.Diff(want, reply, protocmp.Transform()); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}

	_, err = client.DelNetwork(t.Context(), &cnirpc.DelNetworkRequest{ContainerID: "gone"})
	<-got
	if s := status.Convert(err); s.Code() != codes.Unknown || s.Message() != "1 error occurred:\n\t* datastore: unknown pod\n\n" {
		t.Errorf("unknown pod: code %v, message %q", s.Code(), s.Message())
	}

	conn := r.connect(t)
	write(t, conn, cniwire.AppendDelRequest(nil, &cniwire.DelRequest{ContainerID: "gone"}))
	frame, err := cniwire.ReadFrame(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	lean, err := cniwire.DecodeDelReply(frame)
	if err != nil || !lean.Unknown || lean.Success {
		t.Errorf("lean unknown pod: %+v, %v", lean, err)
	}
	<-got
}

func TestOtherServices(t *testing.T) {
	t.Parallel()
	r := start(t, backend{})
	conn := r.dial(t)

	for _, service := range []string{"", "grpc.health.v1.aws-node"} {
		resp, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, resp.GetStatus(), err)
		}
	}
	policy, err := cnirpc.NewConfigServerBackendClient(conn).GetNetworkPolicyConfigs(t.Context(), &emptypb.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	want := &cnirpc.NetworkPolicyAgentConfigReply{NetworkPolicyMode: "standard", MultiNICEnabled: true, NodeIPv4: "10.0.0.1", InstanceID: "i-1", Region: "us-west-2"}
	if diff := cmp.Diff(want, policy, protocmp.Transform()); diff != "" {
		t.Errorf("policy config (-want +got):\n%s", diff)
	}

	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	wantNames := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection", "rpc.CNIBackend", "rpc.ConfigServerBackend"}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}

func TestSocketModes(t *testing.T) {
	t.Parallel()
	r := start(t, backend{})
	for path, want := range map[string]fs.FileMode{
		filepath.Dir(r.grpc): fs.ModeDir | 0o755,
		r.grpc:               fs.ModeSocket | 0o660,
		r.lean:               fs.ModeSocket | 0o600,
	} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if exists(r.grpc) || exists(r.lean) {
		t.Error("a socket file is left behind")
	}
}

// stale leaves a socket file without a server, like a killed process.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStaleSocketsAreReplaced(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	g, l := filepath.Join(dir, "g"), filepath.Join(dir, "l")
	for _, path := range []string{g, l} {
		stale(t, path)
	}
	r := start(t, echoAdd(&fullReply, nil), func(o *Options) { o.GRPCSocket, o.LeanSocket = g, l })
	testenv.Eventually(t, "an answer on the lean socket", func() bool {
		conn, err := net.Dial("unix", r.lean)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	if _, err := cnirpc.NewCNIBackendClient(r.dial(t)).AddNetwork(t.Context(), &cnirpc.AddNetworkRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	r := start(t, echoAdd(&fullReply, nil))
	dir := tempDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 100))
	for name, tc := range map[string]struct{ grpc, lean, want string }{
		"gRPC socket of a living daemon": {r.grpc, filepath.Join(dir, "l"), "listen on " + r.grpc + ": another process is serving it"},
		"lean socket of a living daemon": {filepath.Join(dir, "g"), r.lean, "listen on " + r.lean + ": another process is serving it"},
		"not a socket":                   {file, filepath.Join(dir, "l"), "listen on " + file + ": a file that is not a socket is in its place"},
		"path too long":                  {long, filepath.Join(dir, "l"), "at most 103 are possible"},
		"directory is a file":            {filepath.Join(file, "sub", "s"), filepath.Join(dir, "l"), "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := New(Options{GRPCSocket: tc.grpc, LeanSocket: tc.lean, Backend: backend{}, Log: slog.New(slog.DiscardHandler)}).Serve(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if exists(filepath.Join(dir, "g")) || exists(filepath.Join(dir, "l")) {
				t.Error("a socket file is left behind")
			}
		})
	}
	if _, err := cnirpc.NewCNIBackendClient(r.dial(t)).AddNetwork(t.Context(), &cnirpc.AddNetworkRequest{}); err != nil {
		t.Errorf("the living daemon does not answer any more: %v", err)
	}
}

// refused checks that the connection is closed without a reply.
func refused(t *testing.T, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 16)); n != 0 || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v; want the connection closed without a reply", n, err)
	}
}

func TestBadFrames(t *testing.T) {
	t.Parallel()
	r := start(t, echoAdd(&fullReply, nil))
	for name, b := range map[string][]byte{
		"too large":     {0xff, 0xff, 0xff, 0xff, 1},
		"empty message": {0, 0, 0, 0},
		"unknown kind":  {0, 0, 0, 1, 99},
		"reply":         cniwire.AppendAddReply(nil, &fullReply),
	} {
		t.Run(name, func(t *testing.T) {
			conn := r.connect(t)
			write(t, conn, b)
			refused(t, conn)
		})
	}
	hasty := start(t, echoAdd(&fullReply, nil), func(o *Options) { o.RequestTimeout = 50 * time.Millisecond })
	for name, b := range map[string][]byte{"cut off": cniwire.AppendAddRequest(nil, &cniwire.AddRequest{PodName: "p"})[:6], "silence": nil} {
		t.Run(name, func(t *testing.T) {
			conn := hasty.connect(t)
			_, _ = conn.Write(b) // a slow machine may be too late even for this
			refused(t, conn)
		})
	}
	conn := r.connect(t)
	write(t, conn, cniwire.AppendAddRequest(nil, &cniwire.AddRequest{}))
	readAdd(t, conn)
}

// held is a backend whose ADDs wait until released or until their context ends.
type held struct {
	backend
	entered chan struct{}
	release chan struct{}
	ended   chan error // context errors of requests that gave up
}

func newHeld() *held {
	h := &held{entered: make(chan struct{}, 64), release: make(chan struct{}), ended: make(chan error, 64)}
	h.add = func(ctx context.Context, _ *cniwire.AddRequest) *cniwire.AddReply {
		h.entered <- struct{}{}
		select {
		case <-h.release:
			return &cniwire.AddReply{Success: true}
		case <-ctx.Done():
			h.ended <- ctx.Err()
			return &cniwire.AddReply{Cause: "daemon-terminating", Transient: true}
		}
	}
	h.del = func(context.Context, *cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Success: true} }
	return h
}

type addResult struct {
	reply *cnirpc.AddNetworkReply
	err   error
}

func (r *running) addInBackground(t *testing.T, ctx context.Context) <-chan addResult {
	client := cnirpc.NewCNIBackendClient(r.dial(t))
	c := make(chan addResult, 1)
	go func() {
		reply, err := client.AddNetwork(ctx, &cnirpc.AddNetworkRequest{})
		c <- addResult{reply, err}
	}()
	return c
}

func TestDrain(t *testing.T) {
	t.Parallel()
	h := newHeld()
	r := start(t, h)
	viaGRPC := r.addInBackground(t, t.Context())
	testenv.Receive(t, "the gRPC request", h.entered)
	busy, idle := r.connect(t), r.connect(t)
	write(t, busy, cniwire.AppendAddRequest(nil, &cniwire.AddRequest{}))
	testenv.Receive(t, "the lean request", h.entered)

	r.stop()
	// A connection without a request ends at once, and no new one is accepted.
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("idle connection: %v, want end of file", err)
	}
	testenv.Eventually(t, "the sockets to go", func() bool { return !exists(r.grpc) && !exists(r.lean) })
	select {
	case err := <-r.done:
		t.Fatalf("Serve returned before its requests were answered: %v", err)
	default:
	}

	close(h.release)
	if reply := readAdd(t, busy); !reply.Success {
		t.Errorf("lean reply while draining: %+v", reply)
	}
	if got := testenv.Receive(t, "the gRPC reply", viaGRPC); got.err != nil || !got.reply.GetSuccess() {
		t.Errorf("gRPC reply while draining: %v", got.err)
	}
	if err := r.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestDrainLimit(t *testing.T) {
	t.Parallel()
	h := newHeld()
	r := start(t, h, func(o *Options) { o.DrainLimit = 20 * time.Millisecond })
	viaGRPC := r.addInBackground(t, t.Context())
	testenv.Receive(t, "the gRPC request", h.entered)
	conn := r.connect(t)
	write(t, conn, cniwire.AppendAddRequest(nil, &cniwire.AddRequest{}))
	testenv.Receive(t, "the lean request", h.entered)

	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for range 2 {
		if err := testenv.Receive(t, "a cancelled request", h.ended); !errors.Is(err, context.Canceled) {
			t.Errorf("request ended with %v", err)
		}
	}
	if reply := readAdd(t, conn); reply.Success || reply.Cause != "daemon-terminating" {
		t.Errorf("lean reply after the limit: %+v", reply)
	}
	if got := testenv.Receive(t, "the gRPC error", viaGRPC); status.Code(got.err) != codes.Unavailable {
		t.Errorf("gRPC error after the limit: %v", got.err)
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	h := newHeld()
	r := start(t, h)
	conn := r.connect(t)
	write(t, conn, cniwire.AppendAddRequest(nil, &cniwire.AddRequest{}))
	testenv.Receive(t, "the lean request", h.entered)
	conn.Close()
	if err := testenv.Receive(t, "the lean request to be given up", h.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("lean request ended with %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	r.addInBackground(t, ctx)
	testenv.Receive(t, "the gRPC request", h.entered)
	cancel()
	if err := testenv.Receive(t, "the gRPC request to be given up", h.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("gRPC request ended with %v", err)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	const limit, clients = 3, 8
	var now, most atomic.Int32
	entered, release := make(chan struct{}, clients), make(chan struct{})
	r := start(t, backend{add: func(context.Context, *cniwire.AddRequest) *cniwire.AddReply {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		entered <- struct{}{}
		<-release
		return &cniwire.AddReply{Success: true}
	}}, func(o *Options) { o.MaxRequests = limit })
	var conns []net.Conn
	for range clients {
		conn := r.connect(t)
		write(t, conn, cniwire.AppendAddRequest(nil, &cniwire.AddRequest{}))
		conns = append(conns, conn)
	}
	for range limit {
		testenv.Receive(t, "a request to enter", entered)
	}
	for range clients {
		release <- struct{}{}
	}
	for _, conn := range conns {
		readAdd(t, conn)
	}
	if most.Load() != limit {
		t.Errorf("%d requests at once, limit %d", most.Load(), limit)
	}

	// With all slots taken, health checks and the other socket still work.
	h := newHeld()
	full := start(t, h, func(o *Options) { o.MaxRequests = 1 })
	waiting := full.addInBackground(t, t.Context())
	testenv.Receive(t, "the request that takes the slot", h.entered)
	second, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	defer cancel()
	if got := testenv.Receive(t, "the request without a slot", full.addInBackground(t, second)); status.Code(got.err) != codes.DeadlineExceeded {
		t.Errorf("request without a slot: %v", got.err)
	}
	if _, err := healthpb.NewHealthClient(full.dial(t)).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health check while busy: %v", err)
	}
	conn := full.connect(t)
	write(t, conn, cniwire.AppendDelRequest(nil, &cniwire.DelRequest{}))
	if _, err := cniwire.ReadFrame(conn, nil); err != nil {
		t.Errorf("lean DEL while gRPC is busy: %v", err)
	}
	close(h.release)
	testenv.Receive(t, "the waiting request", waiting)
}

func TestServeAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := tempDir(t)
	g, l := filepath.Join(dir, "g"), filepath.Join(dir, "l")
	if err := New(Options{GRPCSocket: g, LeanSocket: l, Backend: backend{}, Log: slog.New(slog.DiscardHandler)}).Serve(ctx); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if exists(g) || exists(l) {
		t.Error("a socket file is left behind")
	}
}
