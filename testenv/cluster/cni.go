package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cnictl/plugin/install"
	"cnictl/plugin/portmap"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// Programs of the CNI beside the daemon and its plugin.
const (
	initProgram   = "aws-vpc-cni-init"
	egressProgram = "egress-cni"
	probe         = "grpc-health-probe"

	portmapProgram = "portmap"
)

// StartCNI does what the DaemonSet's pod does: it runs the init container, then the
// entrypoint with the manifest's environment and rights, and waits until the daemon
// serves. Shortly after that the conflist is there and the node Ready.
func (m *Machine) StartCNI(ctx context.Context) error {
	if err := m.LaunchCNI(ctx); err != nil {
		return err
	}
	if err := m.WaitServing(ctx); err != nil {
		return fmt.Errorf("CNI daemon: %w", err)
	}
	return nil
}

// LaunchCNI is StartCNI that does not wait: the daemon may never serve.
func (m *Machine) LaunchCNI(ctx context.Context) error {
	if err := m.layImages(); err != nil {
		return fmt.Errorf("lay out the CNI's images: %w", err)
	}
	kubeconfig, err := m.CNIKubeconfig(ctx)
	if err != nil {
		return err
	}
	env := map[string]string{"MY_NODE_NAME": m.Name, "KUBECONFIG": kubeconfig}
	maps.Copy(env, m.env)
	all := m.DaemonEnv()
	maps.Copy(all, env)
	list := environment()
	for name, value := range all {
		if value != "" && name != "PATH" {
			list = append(list, name+"="+value)
		}
	}
	dir := m.image("init")
	r, err := m.Exec(agent.Cmd{Argv: []string{filepath.Join(dir, initProgram)}, Dir: dir, Env: list})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("status %d: %s", r.Code, strings.TrimSpace(string(r.Stderr)))
	}
	if err != nil {
		return fmt.Errorf("init container: %w", err)
	}
	return m.StartEntrypoint(m.image("app"), env)
}

// StopCNI ends the entrypoint's container by a signal: with SIGTERM as kubelet does, with
// SIGKILL as the kernel when memory is short.
func (m *Machine) StopCNI(ctx context.Context, signal syscall.Signal) error {
	_, err := m.StopDaemon(ctx, signal)
	return err
}

// CNIKubeconfig writes the kubeconfig of the CNI's ServiceAccount and returns its path,
// which is the same in the node.
func (m *Machine) CNIKubeconfig(ctx context.Context) (string, error) {
	file := filepath.Join(m.Dir, "aws-node.kubeconfig")
	return file, m.cluster.API.WriteKubeconfig(ctx, file, "aws-node", APIServer.String())
}

// SetEnv changes what the CNI is told when it starts the next time; an empty value
// removes a variable.
func (m *Machine) SetEnv(name, value string) { m.env[name] = value }

func (m *Machine) image(name string) string { return filepath.Join(m.Dir, "image", name) }

// layImages makes the working directories of the two containers.
func (m *Machine) layImages() error {
	for _, name := range []string{"init", "app"} {
		if err := os.MkdirAll(m.image(name), 0o755); err != nil {
			return err
		}
	}
	plugins, err := filepath.Glob(filepath.Join(m.cluster.opts.Binaries, "reference", "*"))
	if err != nil {
		return err
	}
	own := func(name string) string { return filepath.Join(m.cluster.opts.Binaries, name) }
	for dir, programs := range map[string][]string{
		"init": append(plugins, own(initProgram), own(portmapProgram)),
		"app":  {own(node.EntrypointBinary), own(node.DaemonBinary), own(node.PluginBinary), own(egressProgram), own(probe)},
	} {
		for _, from := range programs {
			to := filepath.Join(m.image(dir), filepath.Base(from))
			if slices.Contains(plugins, from) && filepath.Base(from) == portmapProgram {
				to = filepath.Join(m.image(dir), portmap.Reference) // ours stands before it
			}
			if err := copyFile(from, to); err != nil {
				return err
			}
		}
	}
	return writeWhole(filepath.Join(m.image("app"), "10-aws.conflist"), []byte(install.Template), 0o644)
}

// Conflist is the path of what makes the node Ready, outside of the node.
func (m *Machine) Conflist() string { return filepath.Join(m.Dir, cniConf, "10-aws.conflist") }
