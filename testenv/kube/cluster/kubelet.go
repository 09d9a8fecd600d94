package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/labels"

	"cnictl/testenv/node/agent"
)

// StartKubelet starts the node's kubelet. It registers the node, which becomes Ready when
// the runtime has a conflist.
func (m *Machine) StartKubelet(context.Context) error {
	if err := makeCgroup(m.cgroup()); err != nil {
		return err
	}
	kubeconfig, err := m.kubeconfig()
	if err != nil {
		return err
	}
	config, err := m.writeConfig(kubelet, map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    "::", // IPv4 too
		// Only the test's VPC can reach it.
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": true},
			"webhook":   map[string]any{"enabled": false},
		},
		"authorization":            map[string]any{"mode": "AlwaysAllow"},
		"containerRuntimeEndpoint": "unix://" + ContainerdSocket,
		"maxPods":                  m.MaxPods,
		// Kubelets that share a group kill each other's pods.
		"cgroupRoot": m.cgroup(), "cgroupDriver": "cgroupfs", "enforceNodeAllocatable": []string{},
		"failCgroupV1": false, "failSwapOn": false, "oomScoreAdj": 0,
		// The machine's disk and memory do not belong to the node.
		"evictionHard":                map[string]any{"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		"imageGCHighThresholdPercent": 100,
		"resolvConf":                  "",
		"nodeStatusUpdateFrequency":   "2s",
		"syncFrequency":               "10s",
		"registryPullQPS":             0,
		"eventRecordQPS":              0,
		"kubeAPIQPS":                  200, "kubeAPIBurst": 400,
		// A container that ends restarts after a second each time, not after up to five minutes.
		"featureGates":     map[string]bool{"KubeletCrashLoopBackOffMax": true},
		"crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "1s"},
	})
	if err != nil {
		return err
	}
	return m.serve(kubelet, agent.Cmd{
		Argv: []string{
			m.cluster.programs[kubelet],
			"--config=" + config, "--kubeconfig=" + kubeconfig,
			"--root-dir=" + filepath.Join(m.Dir, "kubelet"), "--cert-dir=" + filepath.Join(m.Dir, "kubelet", "pki"),
			"--hostname-override=" + m.Name, "--node-ip=" + m.Address().String(),
			"--node-labels=" + labels.FormatLabels(m.labels),
			"--v=2",
		},
		Env: environment(),
	})
}

// StartProxy starts kube-proxy, which makes Services reachable.
func (m *Machine) StartProxy(context.Context) error {
	kubeconfig, err := m.kubeconfig()
	if err != nil {
		return err
	}
	config, err := m.writeConfig(kubeProxy, map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		"mode":             m.cluster.opts.ProxyMode,
		"hostnameOverride": m.Name,
		"oomScoreAdj":      0,
		// The machine sets the size of the table.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0},
	})
	if err != nil {
		return err
	}
	return m.serve(kubeProxy, agent.Cmd{
		Argv: []string{m.cluster.programs[kubeProxy], "--config=" + config, "--v=2"},
		Env:  environment(),
	})
}

// Address returns the node's address, in the cluster's family.
func (m *Machine) Address() netip.Addr {
	if m.cluster.opts.IPv6 {
		return m.Primary.IPv6s[0]
	}
	return m.Instance.PrimaryIP
}

// cgroup returns the group of the node's pods.
func (m *Machine) cgroup() string {
	return m.cluster.identity.cgroup() + "/" + filepath.Base(m.Dir)
}

// MakeCgroup creates a group below the node's, for sandboxes that kubelet does not create, and
// returns its path. The group is removed with the cluster.
func (m *Machine) MakeCgroup(name string) (string, error) {
	path := m.cgroup() + "/" + name
	return path, makeCgroup(path)
}

func (m *Machine) kubeconfig() (string, error) {
	file := filepath.Join(m.Dir, "kubeconfig")
	return file, m.cluster.WriteKubeconfig(file, APIServer.String())
}

// writeConfig writes the configuration of a program; JSON is YAML.
func (m *Machine) writeConfig(name string, config map[string]any) (string, error) {
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return "", fmt.Errorf("configure %s: %w", name, err)
	}
	file := filepath.Join(m.Dir, name+".yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", fmt.Errorf("configure %s: %w", name, err)
	}
	return file, nil
}
