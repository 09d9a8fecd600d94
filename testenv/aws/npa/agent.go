package npa

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv/network/netns"
)

// HealthService is the name of the agent's health service, in addition to "".
const HealthService = "grpc.health.v1.np-agent"

// prefixes of host links, in the order the agent tries them.
var prefixes = []string{"eni", "vlan"}

// Options configure an Agent.
type Options struct {
	Socket string
	// Netns is where host links are looked up; if nil, they are assumed to exist.
	Netns *netns.NS
}

// Call is a call that the agent received.
type Call struct {
	Delete          bool
	Namespace, Name string
	Mode            string
	Interfaces      int32
	Err             string // of the answer; also "" if Success is false without an error
	Success         bool
}

// Fault changes how calls are answered. They are always recorded.
type Fault struct {
	Refuse  bool          // Success=false
	Error   string        // a gRPC error with this text
	Wait    time.Duration // before the answer
	Hang    bool          // no answer until the caller gives up or the agent is closed
	Times   int           // number of calls it applies to; 0 for all, until the next SetFault
	Deletes bool          // applies to deletions too
}

// Agent is a running stand-in.
type Agent struct {
	opts   Options
	server *grpc.Server
	served chan struct{}
	closed chan struct{}

	mu    sync.Mutex
	calls []Call
	pods  map[string]string // mode by namespace/name
	fault Fault
	left  int
	wake  chan struct{} // closed at each call
}

// Start listens. It replaces a leftover socket.
func Start(o Options) (*Agent, error) {
	if err := os.Remove(o.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove leftover socket: %w", err)
	}
	l, err := net.Listen("unix", o.Socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the plugin: %w", err)
	}
	a := &Agent{
		opts: o, server: grpc.NewServer(grpc.WaitForHandlers(true)), served: make(chan struct{}), closed: make(chan struct{}),
		pods: map[string]string{}, wake: make(chan struct{}),
	}
	cnirpc.RegisterNPBackendServer(a.server, backend{agent: a})
	h := health.NewServer()
	h.SetServingStatus(HealthService, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(a.server, h)
	reflection.Register(a.server)
	go func() {
		defer close(a.served)
		_ = a.server.Serve(l) // until Close
	}()
	return a, nil
}

// Close stops the agent immediately: hanging calls fail.
func (a *Agent) Close() {
	select {
	case <-a.closed:
		return
	default:
	}
	close(a.closed)
	a.server.Stop()
	<-a.served
}

// SetFault sets how calls are answered from now on; the zero Fault removes the fault.
func (a *Agent) SetFault(f Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault, a.left = f, f.Times
}

// Calls returns all calls so far, in order.
func (a *Agent) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Call(nil), a.calls...)
}

// Pods returns the modes of the pods that were enforced and not deleted, by namespace/name.
func (a *Agent) Pods() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]string, len(a.pods))
	for pod, mode := range a.pods {
		out[pod] = mode
	}
	return out
}

// Await waits until the recorded calls meet a condition.
func (a *Agent) Await(ctx context.Context, wanted func([]Call) bool) error {
	for {
		a.mu.Lock()
		calls, wake := append([]Call(nil), a.calls...), a.wake
		a.mu.Unlock()
		if wanted(calls) {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("%w; the agent was called: %+v", ctx.Err(), calls)
		}
	}
}

type backend struct {
	cnirpc.UnimplementedNPBackendServer
	agent *Agent
}

func (b backend) EnforceNpToPod(ctx context.Context, r *cnirpc.EnforceNpRequest) (*cnirpc.EnforceNpReply, error) {
	c := Call{Namespace: r.GetK8S_POD_NAMESPACE(), Name: r.GetK8S_POD_NAME(), Mode: r.GetNETWORK_POLICY_MODE(), Interfaces: r.GetInterfaceCount()}
	ok, err := b.agent.answer(ctx, c)
	return &cnirpc.EnforceNpReply{Success: ok}, err
}

func (b backend) DeletePodNp(ctx context.Context, r *cnirpc.DeleteNpRequest) (*cnirpc.DeleteNpReply, error) {
	ok, err := b.agent.answer(ctx, Call{Delete: true, Namespace: r.GetK8S_POD_NAMESPACE(), Name: r.GetK8S_POD_NAME()})
	return &cnirpc.DeleteNpReply{Success: ok}, err
}

// answer decides a call and records it.
func (a *Agent) answer(ctx context.Context, c Call) (bool, error) {
	f := a.takeFault(c.Delete)
	err := a.suffer(ctx, f)
	if err == nil && !c.Delete && !f.Refuse {
		err = a.attach(c)
	}
	c.Success = err == nil && !f.Refuse
	if err != nil {
		c.Err = status.Convert(err).Message()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, c)
	pod := c.Namespace + "/" + c.Name
	switch {
	case c.Success && c.Delete:
		delete(a.pods, pod)
	case c.Success:
		a.pods[pod] = c.Mode
	}
	close(a.wake)
	a.wake = make(chan struct{})
	return c.Success, err
}

func (a *Agent) takeFault(deletion bool) Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.fault
	if deletion && !f.Deletes {
		return Fault{}
	}
	if f.Times > 0 {
		if a.left == 0 {
			return Fault{}
		}
		a.left--
	}
	return f
}

func (a *Agent) suffer(ctx context.Context, f Fault) error {
	var after <-chan time.Time
	if f.Wait > 0 && !f.Hang {
		timer := time.NewTimer(f.Wait)
		defer timer.Stop()
		after = timer.C
	}
	if f.Hang || f.Wait > 0 {
		select {
		case <-after:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-a.closed:
			return status.Error(codes.Unavailable, "the agent is stopping")
		}
	}
	if f.Error != "" {
		return status.Error(codes.Unknown, f.Error)
	}
	return nil
}

// attach checks that the links exist to which the agent would attach its programs.
func (a *Agent) attach(c Call) error {
	switch strings.ToLower(c.Mode) {
	case "standard", "strict":
	default:
		return status.Error(codes.Unknown, "Invalid Network Policy Mode")
	}
	if a.opts.Netns == nil {
		return nil
	}
	return a.opts.Netns.Do(func() error {
		for i := range int(c.Interfaces) {
			if !linked(c, i) {
				return status.Error(codes.Unknown, "Link not found")
			}
		}
		return nil
	})
}

// linked reports whether one of an interface's possible host links exists.
func linked(c Call, index int) bool {
	for _, prefix := range prefixes {
		if _, err := net.InterfaceByName(netnames.HostVeth(prefix, c.Namespace, c.Name, index)); err == nil {
			return true
		}
	}
	return false
}
