package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/network/netns"
	"cnictl/testenv/node"
)

// SystemNamespace is the namespace of the CNI's pods.
const SystemNamespace = metav1.NamespaceSystem

// The CNI's DaemonSets exclude nodes whose computeType label says that another network
// runs there.
const (
	computeType = "eks.amazonaws.com/compute-type"
	notOurs     = "hybrid"
)

// StartCNI lets the CNI's DaemonSet run on the node and waits until its pod is Ready.
func (m *Machine) StartCNI(ctx context.Context) error {
	if err := m.label(ctx, computeType, nil); err != nil {
		return err
	}
	return m.AwaitCNI(ctx)
}

// StopCNI excludes the node from the CNI's DaemonSet and waits until its pod is gone. What
// the CNI created on the node stays.
func (m *Machine) StopCNI(ctx context.Context) error {
	if err := m.label(ctx, computeType, notOurs); err != nil {
		return err
	}
	return Await(ctx, "the CNI's pod to be gone", func() error {
		pods, err := m.cniPods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%s is there", pods[0].Name)
		}
		return err
	})
}

// label sets a label of the node; nil removes it.
func (m *Machine) label(ctx context.Context, name string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{name: value}}})
	if err != nil {
		return err
	}
	if _, err := of[corev1.Node](m.cluster, "").Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label node %s: %w", m.Name, err)
	}
	return nil
}

// CNIPod returns the CNI's pod on the node.
func (m *Machine) CNIPod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := m.cniPods(ctx)
	if err == nil && len(pods) != 1 {
		err = fmt.Errorf("%d pods of the CNI on %s, want one", len(pods), m.Name)
	}
	if err != nil {
		return nil, err
	}
	return &pods[0], nil
}

func (m *Machine) cniPods(ctx context.Context) ([]corev1.Pod, error) {
	return List[corev1.Pod](ctx, m.cluster, SystemNamespace, metav1.ListOptions{
		LabelSelector: "k8s-app=aws-node", FieldSelector: "spec.nodeName=" + m.Name,
	})
}

// AwaitCNI waits until the CNI's pod on the node is Ready and not terminating.
func (m *Machine) AwaitCNI(ctx context.Context) error {
	return Await(ctx, "the CNI's pod on "+m.Name+" to be Ready", func() error {
		p, err := m.CNIPod(ctx)
		switch {
		case err != nil:
			return err
		case p.DeletionTimestamp != nil:
			return errors.New("it is going")
		case !podReady(p):
			return fmt.Errorf("phase %s: %+v %+v", p.Status.Phase, p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
		}
		return nil
	})
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// KillDaemon kills the daemon as the kernel does when memory runs out. Its container ends
// with it, and kubelet starts another: AwaitDaemon waits for that.
func (m *Machine) KillDaemon() (pid int, err error) {
	pid, err = m.Process(node.DaemonBinary)
	if err == nil {
		err = unix.Kill(pid, unix.SIGKILL)
	}
	if err != nil {
		return 0, fmt.Errorf("kill %s: %w", node.DaemonBinary, err)
	}
	return pid, nil
}

// AwaitDaemon waits until a daemon other than the killed one serves plugins.
func (m *Machine) AwaitDaemon(ctx context.Context, killed int) error {
	return Await(ctx, "the next daemon on "+m.Name, func() error {
		pid, err := m.Process(node.DaemonBinary)
		if err == nil && pid == killed {
			err = fmt.Errorf("process %d is there", pid)
		}
		if err != nil {
			return err
		}
		conn, err := m.Dial("unix", node.LeanSocket, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Process returns the PID, as the caller sees it, of the process that runs a program in the
// node's network.
func (m *Machine) Process(program string) (int, error) {
	pid, err := Process(program, m.NS)
	if err != nil {
		err = fmt.Errorf("on %s: %w", m.Name, err)
	}
	return pid, err
}

// Process finds the process that runs a program in a network, nil for the caller's.
func Process(program string, network *netns.NS) (int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	wanted := "/proc/self/ns/net"
	if network != nil {
		wanted = fmt.Sprintf("/proc/self/fd/%d", network.FD())
	}
	want, err := os.Stat(wanted)
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		path, err := os.Readlink(link)
		if err != nil || filepath.Base(path) != program {
			continue // another program, or it has ended
		}
		dir := filepath.Dir(link)
		if own, err := os.Stat(filepath.Join(dir, "ns/net")); err == nil && os.SameFile(own, want) {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("%s does not run", program)
}

// CNICache returns the directory, outside the node, in which the runtime keeps the results of
// ADD for DEL.
func (m *Machine) CNICache() string { return filepath.Join(m.upper("/var/lib"), "cni", "results") }
