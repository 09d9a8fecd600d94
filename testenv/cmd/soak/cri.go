package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"cnictl/testenv/kube/cluster"
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
	conn, err := grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(bounded),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return m.Dial("unix", cluster.ContainerdSocket, 10*time.Second)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return &sandboxes{conn, cri.NewRuntimeServiceClient(conn), cgroup}, nil
}

// bounded gives a call the time limit that kubelet gives it.
func bounded(ctx context.Context, method string, q, r any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	limit := 2 * time.Minute
	if method == cri.RuntimeService_RunPodSandbox_FullMethodName {
		limit *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx, method, q, r, conn, o...)
}

// run calls RunPodSandbox, and returns the address of the sandbox.
func (s *sandboxes) run(ctx context.Context, pod *cri.PodSandboxMetadata) (id string, address netip.Addr, err error) {
	r, err := s.client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: &cri.PodSandboxConfig{
		Metadata: pod, Hostname: pod.Name,
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
	if err == nil {
		address, err = netip.ParseAddr(status.GetStatus().GetNetwork().GetIp())
	}
	return r.PodSandboxId, address, err
}

// running selects the sandboxes that kubelet need not remove.
var running = &cri.PodSandboxFilter{State: &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY}}

// list describes the sandboxes of the soak's pods.
func (s *sandboxes) list(ctx context.Context, which *cri.PodSandboxFilter) (out []string, _ error) {
	r, err := s.client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: which})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, i := range r.Items {
		if i.Metadata.GetNamespace() == namespace {
			out = append(out, fmt.Sprintf("sandbox %.12s of pod %s", i.Id, i.Metadata.GetName()))
		}
	}
	return out, nil
}

// startAgain restarts a container that ends, as kubelet does: it creates another one with the same
// configuration in the same sandbox, as the next attempt.
func (s *sandboxes) startAgain(ctx context.Context, name string) error {
	var old *cri.Container
	err := cluster.Await(ctx, "its end", func() error {
		r, err := s.client.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
			LabelSelector: map[string]string{"io.kubernetes.container.name": name},
		}})
		if err != nil {
			return err
		}
		if len(r.Containers) == 0 {
			return errors.New("there is none")
		}
		old = slices.MaxFunc(r.Containers, func(a, b *cri.Container) int { return cmp.Compare(a.Metadata.Attempt, b.Metadata.Attempt) })
		if old.State == cri.ContainerState_CONTAINER_RUNNING {
			return errors.New("it runs")
		}
		return nil
	})
	if err != nil {
		return err
	}
	container, err := s.client.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: old.Id, Verbose: true})
	pod, also := s.client.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: old.PodSandboxId, Verbose: true})
	if err := errors.Join(err, also); err != nil {
		return err
	}
	var info struct{ Config *cri.ContainerConfig }
	var podInfo struct{ Config *cri.PodSandboxConfig }
	err = errors.Join(json.Unmarshal([]byte(container.Info["info"]), &info), json.Unmarshal([]byte(pod.Info["info"]), &podInfo))
	if err != nil {
		return fmt.Errorf("decode what containerd knows of container %s: %w", name, err)
	}
	info.Config.Metadata.Attempt++
	request := &cri.CreateContainerRequest{PodSandboxId: old.PodSandboxId, Config: info.Config, SandboxConfig: podInfo.Config}
	made, err := s.client.CreateContainer(ctx, request)
	if err == nil {
		_, err = s.client.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId})
	}
	if err == nil {
		_, err = s.client.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: old.Id})
	}
	return err
}
