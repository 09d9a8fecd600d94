package rpcclient_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/cniwire"
	"cnictl/plugin/rpcclient"
	"cnictl/testenv"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/aws/oldipamd"
	"cnictl/testenv/rules/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }

const minute = time.Minute // no test waits that long

// call makes a call the way aws-cni-grpc does.
func call[T any](t testing.TB, s rpcclient.Server, request []byte, decode func([]byte) (T, error)) (reply T, err error) {
	request, err = cniwire.CutFrame(request)
	if err != nil {
		return reply, err
	}
	frame, err := cniwire.CutFrame(s.Call(t.Context(), request))
	if err != nil {
		return reply, err
	}
	if failed, err := cniwire.DecodeCallError(frame); failed != nil || err != nil {
		return reply, failed
	}
	return decode(frame)
}

func addNetwork(t testing.TB, socket string, timeout time.Duration, r *cniwire.AddRequest) (*cniwire.AddReply, error) {
	return call(t, rpcclient.Server{Socket: socket, Timeout: timeout}, cniwire.AppendAddRequest(nil, r), cniwire.DecodeAddReply)
}

func delNetwork(t testing.TB, socket string, timeout time.Duration, r *cniwire.DelRequest) (*cniwire.DelReply, error) {
	return call(t, rpcclient.Server{Socket: socket, Timeout: timeout}, cniwire.AppendDelRequest(nil, r), cniwire.DecodeDelReply)
}

func notifyAgent(t testing.TB, socket string, dial time.Duration, r cniwire.PolicyRequest, gone bool) (bool, error) {
	r.Delete = gone
	reply, err := call(t, rpcclient.Server{Socket: socket, Dial: dial, Timeout: testenv.Left(t)}, cniwire.AppendPolicyRequest(nil, &r), cniwire.DecodePolicyReply)
	return err == nil && reply.Success, err
}

func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "r") // a socket path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// backend answers as a test specifies.
type backend struct {
	cnirpc.UnimplementedCNIBackendServer
	add func(context.Context, *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error)
}

func (b backend) AddNetwork(ctx context.Context, r *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) {
	return b.add(ctx, r)
}

// serve runs a real gRPC server.
func serve(t testing.TB, b backend, opts ...grpc.ServerOption) (socket string, s *grpc.Server) {
	t.Helper()
	socket = socketPath(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s = grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	cnirpc.RegisterCNIBackendServer(s, b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return socket, s
}

var request = cniwire.AddRequest{
	PodName: "web-0", PodNamespace: "default", PodUID: "u", ContainerID: "0000abc", IfName: "eth0", NetworkName: "aws-cni",
	Netns: "/run/netns/x", ClientVersion: "v1", RequiresMultiNIC: true,
}

func fullReply() *cnirpc.AddNetworkReply {
	return &cnirpc.AddNetworkReply{
		Success: true, UseExternalSNAT: true, VPCv4CIDRs: []string{"10.0.0.0/16"}, VPCv6CIDRs: []string{"2001:db8::/56"},
		IPAllocationMetadata: []*cnirpc.IPAllocationMetadata{{IPv4Addr: "10.0.0.5", DeviceNumber: 1, RouteTableId: 2}, {IPv6Addr: "2001:db8::5", DeviceNumber: -1}},
		PodVlanId:            7, PodENIMAC: "02:00:00:00:00:01", PodENISubnetGW: "10.0.0.1", ParentIfIndex: 3, NetworkPolicyMode: "strict",
		Cause: "x", Detail: "y", Transient: true, // fields that upstream does not have
	}
}

// TestAddNetwork_Fields: every field arrives, in both directions.
func TestAddNetwork_Fields(t *testing.T) {
	t.Parallel()
	var got *cnirpc.AddNetworkRequest
	var agent []string
	socket, s := serve(t, backend{add: func(ctx context.Context, r *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) {
		got = r
		md, _ := metadata.FromIncomingContext(ctx)
		agent = md.Get("user-agent")
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the server did not get the deadline")
		}
		return fullReply(), nil
	}})
	reply, err := addNetwork(t, socket, minute, &request)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop() // its handler has returned, which the race detector cannot see through a socket
	asked := []any{
		got.GetK8S_POD_NAME(), got.GetK8S_POD_NAMESPACE(), got.GetK8S_POD_INFRA_CONTAINER_ID(), got.GetNetns(), got.GetIfName(), got.GetNetworkName(),
		got.GetContainerID(), got.GetClientVersion(), got.GetRequiresMultiNICAttachment(),
	}
	if d := cmp.Diff([]any{"web-0", "default", "0000abc", "/run/netns/x", "eth0", "aws-cni", "0000abc", "v1", true}, asked); d != "" {
		t.Errorf("request (-want +got):\n%s", d)
	}
	want := &cniwire.AddReply{
		Success: true, UseExternalSNAT: true, VPCv4CIDRs: []string{"10.0.0.0/16"}, VPCv6CIDRs: []string{"2001:db8::/56"},
		Allocations: []cniwire.Allocation{{IPv4: "10.0.0.5", Device: 1, RouteTable: 2}, {IPv6: "2001:db8::5", Device: -1}},
		PodVLANID:   7, PodENIMAC: "02:00:00:00:00:01", PodENISubnetGW: "10.0.0.1", ParentIfIndex: 3, NetworkPolicyMode: "strict",
	}
	if d := cmp.Diff(want, reply); d != "" {
		t.Errorf("reply (-want +got):\n%s", d)
	}
	if len(agent) != 1 || !strings.HasPrefix(agent[0], "aws-cni ") {
		t.Errorf("user agent %q", agent)
	}
}

// TestDelNetwork_Upstream: upstream's daemon releases once and does not know the sandbox
// afterwards.
func TestDelNetwork_Upstream(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	d, err := oldipamd.Start(oldipamd.Options{Socket: socket, NetworkPolicyMode: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.SetPod("default", "web-0", oldipamd.TwoNICs("10.0.0.5", "10.0.1.5"))
	if reply, err := addNetwork(t, socket, minute, &request); err != nil || !reply.Success || len(reply.Allocations) != 2 {
		t.Fatalf("ADD: %+v %v", reply, err)
	}
	del := &cniwire.DelRequest{
		PodName: "web-0", PodNamespace: "default", PodUID: "u", ContainerID: "0000abc", IfName: "eth0", NetworkName: "aws-cni", Reason: "PodDeleted", ClientVersion: "v1",
	}
	want := &cniwire.DelReply{
		Success: true, NetworkPolicyMode: "standard",
		Allocations: []cniwire.Allocation{{IPv4: "10.0.0.5", RouteTable: 254}, {IPv4: "10.0.1.5", Device: 1, RouteTable: 10101}},
	}
	reply, err := delNetwork(t, socket, minute, del)
	if d := cmp.Diff(want, reply); err != nil || d != "" {
		t.Errorf("DEL: %v\n%s", err, d)
	}
	if len(d.Held()) != 0 {
		t.Errorf("left: %v", d.Held())
	}
	reply, err = delNetwork(t, socket, minute, del)
	if diff := cmp.Diff(&cniwire.DelReply{Unknown: true}, reply); err != nil || diff != "" {
		t.Errorf("second DEL: %v\n%s", err, diff)
	}
	got := d.Dels()[0]
	if got.GetK8S_POD_UID() != "u" || got.GetReason() != "PodDeleted" || got.GetK8S_POD_INFRA_CONTAINER_ID() != "0000abc" || got.GetClientVersion() != "v1" {
		t.Errorf("request: %v", got)
	}
}

// TestErrors_AsGRPC: errors have the same texts as grpc-go's.
func TestErrors_AsGRPC(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20<<10)
	for name, fail := range map[string]error{
		"version skew": status.Error(codes.FailedPrecondition, `wrong client version "v2" (!= "v1")`),
		"escaped":      status.Error(codes.Unknown, "1 error occurred:\n\t* datastore: 100% ü\n\n"),
		"long":         status.Error(codes.Internal, long),
		"other code":   status.Error(codes.Code(77), "x"),
		"panicked":     status.Error(codes.Unavailable, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, _ := serve(t, backend{add: func(context.Context, *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) { return nil, fail }})
			_, theirs := grpcAdd(t, socket)
			_, ours := addNetwork(t, socket, minute, &request)
			var s *cniwire.CallError
			if !errors.As(ours, &s) || theirs == nil || ours.Error() != theirs.Error() || s.Answered != (status.Code(theirs) != codes.Unavailable) {
				t.Errorf("got  %v\nwant %v", ours, theirs)
			}
		})
	}
}

// TestErrors_Unimplemented: an agent does not implement the daemon's calls.
func TestErrors_Unimplemented(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	a, err := npa.Start(npa.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	_, theirs := grpcAdd(t, socket)
	_, ours := addNetwork(t, socket, minute, &request)
	if theirs == nil || ours == nil || ours.Error() != theirs.Error() {
		t.Errorf("got  %v\nwant %v", ours, theirs)
	}
}

func grpcAdd(t testing.TB, socket string) (*cnirpc.AddNetworkReply, error) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return cnirpc.NewCNIBackendClient(conn).AddNetwork(t.Context(), &cnirpc.AddNetworkRequest{K8S_POD_NAME: "web-0", K8S_POD_NAMESPACE: "default"})
}

// TestDial_Refused: the error has grpc-go's text and wraps the errno.
func TestDial_Refused(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	refusing := socketPath(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: refusing, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for path, errno := range map[string]unix.Errno{socket: unix.ENOENT, refusing: unix.ECONNREFUSED} {
		_, theirs := grpcAdd(t, path)
		_, ours := addNetwork(t, path, minute, &request)
		var failed *cniwire.CallError
		want := `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix ` + path + `: connect: ` + errno.Error() + `"`
		if !errors.As(ours, &failed) || failed.Answered || failed.Text != want || theirs.Error() != want {
			t.Errorf("got  %v\nwant %v", ours, theirs)
		}
	}
}

// TestDeadline: a call to a server that does not answer ends, whether or not the server
// accepts the connection.
func TestDeadline(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, backend{add: func(ctx context.Context, _ *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	deaf := socketPath(t) // accepts nothing; the connection waits in the backlog
	l, err := net.Listen("unix", deaf)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const want = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
	for name, path := range map[string]string{"slow": socket, "deaf": deaf} {
		if _, err := addNetwork(t, path, 100*time.Millisecond, &request); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPolicy: the agent's answers, and an agent that starts during the dial.
func TestPolicy(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	r := cniwire.PolicyRequest{PodName: "web-0", PodNamespace: "default", Mode: "Strict", Interfaces: 2}
	if _, err := notifyAgent(t, socket, 0, r, false); err == nil || !strings.HasSuffix(err.Error(), `s: connect: no such file or directory"`) {
		t.Errorf("no agent: %v", err)
	}
	type result struct {
		ok  bool
		err error
	}
	late := make(chan result, 1)
	go func() {
		ok, err := notifyAgent(t, socket, minute, r, false)
		late <- result{ok, err}
	}()
	a, err := npa.Start(npa.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got := <-late; !got.ok || got.err != nil {
		t.Errorf("an agent that is late: %+v", got)
	}
	if ok, err := notifyAgent(t, socket, 0, r, true); !ok || err != nil {
		t.Errorf("deletion: %v %v", ok, err)
	}
	a.SetFault(npa.Fault{Refuse: true, Times: 1})
	if ok, err := notifyAgent(t, socket, 0, r, false); ok || err != nil {
		t.Errorf("refusal: %v %v", ok, err)
	}
	a.SetFault(npa.Fault{Error: "Link not found", Times: 1})
	_, err = notifyAgent(t, socket, 0, r, false)
	if want := "rpc error: code = Unknown desc = Link not found"; err == nil || err.Error() != want {
		t.Errorf("error: %v", err)
	}
	want := []npa.Call{
		{Namespace: "default", Name: "web-0", Mode: "Strict", Interfaces: 2, Success: true},
		{Delete: true, Namespace: "default", Name: "web-0", Success: true},
		{Namespace: "default", Name: "web-0", Mode: "Strict", Interfaces: 2},
		{Namespace: "default", Name: "web-0", Mode: "Strict", Interfaces: 2, Err: "Link not found"},
	}
	if d := cmp.Diff(want, a.Calls()); d != "" {
		t.Error(d)
	}
}

// TestServerEnds: a server that stops lets the call in progress finish; a killed one does not.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	for _, gracefully := range []bool{true, false} {
		taken, goOn := make(chan struct{}), make(chan struct{})
		socket, s := serve(t, backend{add: func(ctx context.Context, _ *cnirpc.AddNetworkRequest) (*cnirpc.AddNetworkReply, error) {
			close(taken)
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return fullReply(), nil
		}})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			<-taken
			if !gracefully {
				s.Stop()
				return
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				s.GracefulStop()
			}()
			close(goOn)
			<-ended
		}()
		reply, err := addNetwork(t, socket, minute, &request)
		<-stopped
		if gracefully && (err != nil || !reply.Success) {
			t.Errorf("gracefully: %v %v", reply, err)
		}
		if !gracefully && (err == nil || !strings.HasPrefix(err.Error(), "rpc error: code = Unavailable desc = error reading from server: ")) {
			t.Errorf("at once: %v", err)
		}
	}
}
