package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cnictl/daemon/install"
	"cnictl/plugin/portmap"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// Programs of the CNI beside the daemon and its plugin.
const (
	initProgram   = "aws-vpc-cni-init"
	egressProgram = "egress-cni"
	grpcProgram   = "aws-cni-grpc"
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
	env, err := m.cniEnv(ctx)
	if err != nil {
		return err
	}
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

// KillDaemon kills the daemon as the kernel does when memory is short, and starts the
// container again when the entrypoint has ended of it, as kubelet does the first time:
// at once and without the init container.
func (m *Machine) KillDaemon(ctx context.Context) error {
	pid, err := m.DaemonProcess()
	if err != nil {
		return err
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", node.DaemonBinary, err)
	}
	if _, err := m.DaemonEnded(ctx); err != nil {
		return err
	}
	env, err := m.cniEnv(ctx)
	if err != nil {
		return err
	}
	if err := m.StartEntrypoint(m.image("app"), env); err != nil {
		return err
	}
	return m.WaitServing(ctx)
}

// DaemonProcess is the number of the daemon's process where the caller is. The other
// methods know the entrypoint, whose child it is.
func (m *Machine) DaemonProcess() (int, error) {
	programs, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	own := filepath.Join(m.image("app"), node.DaemonBinary)
	for _, link := range programs {
		if program, err := os.Readlink(link); err == nil && program == own { // others may have ended
			return strconv.Atoi(filepath.Base(filepath.Dir(link)))
		}
	}
	return 0, fmt.Errorf("%s does not run on %s", node.DaemonBinary, m.Name)
}

// StopCNI ends the entrypoint's container by a signal: with SIGTERM as kubelet does, with
// SIGKILL as the kernel when memory is short.
func (m *Machine) StopCNI(ctx context.Context, signal syscall.Signal) error {
	_, err := m.StopDaemon(ctx, signal)
	return err
}

// cniEnv is what the CNI is told beside the manifest.
func (m *Machine) cniEnv(ctx context.Context) (map[string]string, error) {
	kubeconfig, err := m.CNIKubeconfig(ctx)
	env := map[string]string{"MY_NODE_NAME": m.Name, "KUBECONFIG": kubeconfig}
	maps.Copy(env, m.env)
	return env, err
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
		"app":  {own(node.EntrypointBinary), own(node.DaemonBinary), own(node.PluginBinary), own(grpcProgram), own(egressProgram), own(probe)},
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

// CNICache is the directory, outside of the node, in which the runtime keeps results of
// ADD for DEL.
func (m *Machine) CNICache() string { return filepath.Join(m.upper("/var/lib"), "cni", "results") }
