package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	conn, err := grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return m.Dial("unix", cluster.ContainerdSocket, 10*time.Second)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return &sandboxes{conn, cri.NewRuntimeServiceClient(conn), cgroup}, nil
}

// identity identifies a pod as kubelet does.
type identity struct {
	name, uid string
	attempt   uint32
}

// run calls RunPodSandbox, with kubelet's time limit, and returns the address of the sandbox.
func (s *sandboxes) run(ctx context.Context, i identity) (id string, address netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	r, err := s.client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Namespace: namespace, Name: i.name, Uid: i.uid, Attempt: i.attempt},
		Hostname: i.name,
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.name": i.name, "io.kubernetes.pod.uid": i.uid,
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
	if err == nil {
		address, err = netip.ParseAddr(status.GetStatus().GetNetwork().GetIp())
	}
	return r.PodSandboxId, address, err
}

const callWithin = 2 * time.Minute // kubelet's time limit of the other calls

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
		for _, c := range r.Containers {
			if c.State == cri.ContainerState_CONTAINER_RUNNING {
				return errors.New("it runs")
			}
			if old == nil || c.Metadata.Attempt > old.Metadata.Attempt {
				old = c
			}
		}
		if old == nil {
			return errors.New("there is none")
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
	if err != nil {
		return fmt.Errorf("create container %s again: %w", name, err)
	}
	if _, err := s.client.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId}); err != nil {
		return fmt.Errorf("start container %s again: %w", name, err)
	}
	_, err = s.client.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: old.Id})
	return err
}
