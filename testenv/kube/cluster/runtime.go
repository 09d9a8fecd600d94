package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cnictl/testenv/node/agent"
)

// ContainerdSocket is the socket of the container runtime, as the node sees it.
const ContainerdSocket = "/run/containerd/containerd.sock"

// containerdConfig disables what a node does not use, and selects crun.
const containerdConfig = `version = 2
root = %[1]q
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = %[2]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[3]q
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "crun"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
        BinaryName = %[4]q
        SystemdCgroup = false
`

// StartContainerd starts the container runtime and waits until it serves.
func (m *Machine) StartContainerd(ctx context.Context) error {
	c := m.cluster.programs
	config := filepath.Join(m.Dir, "containerd.toml")
	text := fmt.Sprintf(containerdConfig, filepath.Join(m.Dir, "containerd"), ContainerdSocket, pauseImage, c[crun])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure containerd: %w", err)
	}
	err := m.serve(containerd, agent.Cmd{
		Argv: []string{c[containerd], "--config", config},
		Env:  environment("PATH=" + filepath.Dir(c[shim]) + ":" + os.Getenv("PATH"))[1:],
	})
	if err != nil {
		return err
	}
	return Await(ctx, "containerd", func() error {
		conn, err := m.Dial("unix", ContainerdSocket, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// importImages imports the cluster's images into the runtime.
func (m *Machine) importImages(context.Context) error {
	return m.Import(archives(m.cluster.opts.Binaries)...)
}

// Import imports OCI archives into the runtime.
func (m *Machine) Import(archives ...string) error {
	for _, file := range archives {
		if err := m.run(m.cluster.programs[ctr], "-n", "k8s.io", "images", "import", file); err != nil {
			return err
		}
	}
	return nil
}
