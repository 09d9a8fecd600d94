package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"cnictl/testenv/cluster"
)

// Kubelet's bounds of the calls.
const (
	dialWithin = 10 * time.Second
	runWithin  = 4 * time.Minute
	callWithin = 2 * time.Minute
)

// sandboxes is containerd's CRI on a machine.
type sandboxes struct {
	conn   *grpc.ClientConn
	client cri.RuntimeServiceClient
	cgroup string
}

func openCRI(m *cluster.Machine) (*sandboxes, error) {
	cgroup, err := m.MakeCgroup("soak")
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return m.Dial("unix", cluster.ContainerdSocket, dialWithin)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return &sandboxes{conn: conn, client: cri.NewRuntimeServiceClient(conn), cgroup: cgroup}, nil
}

// identity is a pod as kubelet names it.
type identity struct {
	namespace, name, uid string
	attempt              uint32
}

// run does RunPodSandbox and tells the address that the sandbox got.
func (s *sandboxes) run(ctx context.Context, i identity) (id string, address netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(ctx, runWithin)
	defer cancel()
	r, err := s.client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Namespace: i.namespace, Name: i.name, Uid: i.uid, Attempt: i.attempt},
		Hostname: i.name,
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": i.namespace, "io.kubernetes.pod.name": i.name, "io.kubernetes.pod.uid": i.uid,
		},
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: s.cgroup,
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{
				Network: cri.NamespaceMode_POD, Pid: cri.NamespaceMode_CONTAINER, Ipc: cri.NamespaceMode_POD,
			}},
		},
	}})
	if err != nil {
		return "", netip.Addr{}, err
	}
	status, err := s.client.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: r.PodSandboxId})
	if err != nil {
		return r.PodSandboxId, netip.Addr{}, err
	}
	address, err = netip.ParseAddr(status.GetStatus().GetNetwork().GetIp())
	if err != nil {
		err = fmt.Errorf("a sandbox without an address: %w", err)
	}
	return r.PodSandboxId, address, err
}

func (s *sandboxes) stop(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	_, err := s.client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

func (s *sandboxes) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	_, err := s.client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}

// running are the sandboxes of which kubelet does not just take its time to remove them.
var running = &cri.PodSandboxFilter{State: &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY}}

// list describes sandboxes.
func (s *sandboxes) list(ctx context.Context, which *cri.PodSandboxFilter) ([]string, error) {
	r, err := s.client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: which})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var out []string
	for _, i := range r.Items {
		out = append(out, fmt.Sprintf("sandbox %.12s of pod %s", i.Id, i.Metadata.GetName()))
	}
	return out, nil
}
