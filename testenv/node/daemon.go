package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node/agent"
)

// Sockets and files of the daemon, inside the node.
const (
	LeanSocket = "/var/run/aws-node/cni.sock"   // for the plugin (daemon/api/cniwire)
	GRPCSocket = "/var/run/aws-node/ipamd.sock" // for upstream's plugin
	Checkpoint = "/var/run/aws-node/ipam.json"
)

// DaemonBinary is the daemon's name in Options.Binaries.
const DaemonBinary = "aws-k8s-agent"

// daemon is a started daemon.
type daemon struct {
	pid    int
	output *os.File      // its stdout and stderr
	ended  chan struct{} // closed when result and err are set
	result agent.Result
	err    error
}

// DaemonEnv is the environment of the shipped manifest, with the node's directories and the
// fabric's EC2 API where a setting for them exists.
func (n *Node) DaemonEnv() map[string]string {
	logs := n.opts.paths().Logs
	return map[string]string{
		"PATH":         os.Getenv("PATH"),
		"MY_NODE_NAME": n.Name,
		"MY_POD_NAME":  "aws-node-" + n.Name,

		"ADDITIONAL_ENI_TAGS":                   "{}",
		"AWS_VPC_CNI_NODE_PORT_SUPPORT":         "true",
		"AWS_VPC_ENI_MTU":                       "9001",
		"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    "false",
		"AWS_VPC_K8S_CNI_EXTERNALSNAT":          "false",
		"AWS_VPC_K8S_CNI_LOGLEVEL":              "DEBUG",
		"AWS_VPC_K8S_CNI_RANDOMIZESNAT":         "prng",
		"AWS_VPC_K8S_CNI_VETHPREFIX":            "eni",
		"AWS_VPC_K8S_PLUGIN_LOG_LEVEL":          "DEBUG",
		"DISABLE_INTROSPECTION":                 "false",
		"DISABLE_METRICS":                       "false",
		"DISABLE_NETWORK_RESOURCE_PROVISIONING": "false",
		"ENABLE_IPv4":                           "true",
		"ENABLE_IPv6":                           "false",
		"ENABLE_POD_ENI":                        "false",
		"ENABLE_PREFIX_DELEGATION":              "false",
		"ENABLE_SUBNET_DISCOVERY":               "true",
		"WARM_ENI_TARGET":                       "1",
		"WARM_PREFIX_TARGET":                    "1",

		"AWS_VPC_K8S_CNI_LOG_FILE":    filepath.Join(logs, "ipamd.log"),
		"AWS_VPC_K8S_PLUGIN_LOG_FILE": filepath.Join(logs, "plugin.log"),
		"HOST_CNI_BIN_PATH":           n.opts.paths().CNIBin,
		"HOST_CNI_CONFDIR_PATH":       n.opts.paths().CNIConf,

		"AWS_ENDPOINT_URL_EC2": "http://" + vpc.EC2.String(),
		"AWS_EC2_ENDPOINT":     "http://" + vpc.EC2.String(),
	}
}

// StartDaemon starts the daemon with DaemonEnv, changed by env; an empty value removes a
// variable.
func (n *Node) StartDaemon(env map[string]string) error {
	return n.start(env, agent.Cmd{Argv: []string{filepath.Join(n.opts.Binaries, DaemonBinary)}})
}

// EntrypointBinary is the entrypoint's file name.
const EntrypointBinary = "aws-vpc-cni"

// StartEntrypoint starts the entrypoint, which starts the daemon. The entrypoint is process 1 of
// a container whose working directory dir has the programs of the image. The other methods then
// apply to the entrypoint.
func (n *Node) StartEntrypoint(dir string, env map[string]string) error {
	return n.start(env, agent.Cmd{Argv: []string{filepath.Join(dir, EntrypointBinary)}, Dir: dir, Container: true})
}

func (n *Node) start(env map[string]string, c agent.Cmd) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped || n.daemon != nil {
		return fmt.Errorf("start daemon of node %s: node closed or daemon running", n.Name)
	}
	n.starts++
	path := filepath.Join(n.opts.paths().Logs, fmt.Sprintf("daemon-%d.out", n.starts))
	output, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("start daemon of node %s: %w", n.Name, err)
	}
	all := n.DaemonEnv()
	maps.Copy(all, env)
	d := &daemon{output: output, ended: make(chan struct{})}
	c.Env, c.Confine = list(all), n.confinement()
	d.pid, err = n.agent.Background(c, output, output)
	if err != nil {
		return errors.Join(fmt.Errorf("start daemon of node %s: %w", n.Name, err), output.Close())
	}
	go func() { // ends with the daemon or the node
		defer close(d.ended)
		d.result, d.err = n.agent.Wait(d.pid)
	}()
	n.daemon = d
	return nil
}

// runDir and xtablesLock are host paths mounted in the daemon's container.
const (
	runDir      = "/run/aws-node"
	xtablesLock = "/run/xtables.lock"
)

// makeMounts creates the host paths that the manifest's volumes create.
func (n *Node) makeMounts() error {
	if _, err := n.agent.Run(agent.Cmd{Argv: []string{"/bin/mkdir", "-m", "755", runDir}}); err != nil {
		return err
	}
	lock, err := n.agent.Open(xtablesLock, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return lock.Close()
}

// confinement describes the daemon's container: the manifest's capabilities, and only the
// manifest's mounts and the node's directory, with the tests' sockets, writable.
func (n *Node) confinement() *agent.Confinement {
	return &agent.Confinement{Capabilities: n.opts.Capabilities, Writable: []string{n.Dir, runDir, xtablesLock}}
}

// StopDaemon sends a signal to the daemon and waits until it exits. The result has
// its exit code and CPU time. If the context ends first, the daemon is killed
// and the error says so.
func (n *Node) StopDaemon(ctx context.Context, s syscall.Signal) (agent.Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.daemon
	if d == nil {
		return agent.Result{}, fmt.Errorf("stop daemon of node %s: not running", n.Name)
	}
	n.daemon = nil
	defer d.output.Close()
	if err := n.agent.Signal(d.pid, s); err != nil {
		return agent.Result{}, fmt.Errorf("stop daemon of node %s: %w", n.Name, err)
	}
	select {
	case <-d.ended:
		n.awaitSocketClosed(ctx)
		return d.result, d.err
	case <-ctx.Done():
	}
	err := fmt.Errorf("stop daemon of node %s by %v: %w", n.Name, s, ctx.Err())
	if killErr := n.agent.Signal(d.pid, unix.SIGKILL); killErr != nil {
		return agent.Result{}, errors.Join(err, killErr)
	}
	<-d.ended
	return d.result, errors.Join(err, d.err)
}

// SignalDaemon sends a signal to the daemon.
func (n *Node) SignalDaemon(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.daemon == nil {
		return fmt.Errorf("signal daemon of node %s: not running", n.Name)
	}
	return n.agent.Signal(n.daemon.pid, s)
}

// awaitSocketClosed waits until nothing listens for the plugin any more: a child that the daemon was
// starting when it was killed holds its sockets until exec. The wait is bounded, because a test
// may listen there on purpose, by looks: on a busy machine both the child and they take longer.
func (n *Node) awaitSocketClosed(ctx context.Context) {
	const looks = 1000
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range looks {
		c, err := n.agent.Dial("unix", LeanSocket, time.Second)
		if err != nil {
			return // refused, or no such file
		}
		_ = c.Close() // nothing was sent
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// DaemonEnded waits until the daemon exits on its own and returns the result. If the context
// ends first, the daemon still runs, and the error says so.
func (n *Node) DaemonEnded(ctx context.Context) (agent.Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.daemon
	if d == nil {
		return agent.Result{}, fmt.Errorf("wait for the end of the daemon of node %s: not running", n.Name)
	}
	select {
	case <-d.ended:
	case <-ctx.Done():
		return agent.Result{}, fmt.Errorf("wait for the end of the daemon of node %s: %w", n.Name, ctx.Err())
	}
	n.daemon = nil
	n.awaitSocketClosed(ctx)
	return d.result, errors.Join(d.err, d.output.Close())
}

// WaitServing waits until the daemon accepts plugins' connections. If the daemon exits
// instead, it returns at once with the end of the daemon's output.
func (n *Node) WaitServing(ctx context.Context) error {
	n.mu.Lock()
	d := n.daemon
	n.mu.Unlock()
	if d == nil {
		return fmt.Errorf("wait for daemon of node %s: not running", n.Name)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := n.agent.Dial("unix", LeanSocket, time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-d.ended:
			ended := fmt.Errorf("daemon of node %s ended with status %d:\n%s", n.Name, d.result.Code, tail(d.output.Name(), 4<<10))
			return errors.Join(ended, d.err)
		case <-ctx.Done():
			return fmt.Errorf("wait for daemon of node %s: %w (%w):\n%s", n.Name, ctx.Err(), err, tail(d.output.Name(), 4<<10))
		case <-tick.C:
		}
	}
}

// DaemonPID is the daemon's process id in the node, 0 while it is not running.
func (n *Node) DaemonPID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.daemon == nil {
		return 0
	}
	return n.daemon.pid
}

// Logs returns the last part of each of the node's log files, to print when a test fails.
func (n *Node) Logs() map[string]string {
	logs := map[string]string{}
	files, err := filepath.Glob(filepath.Join(n.opts.paths().Logs, "*"))
	if err != nil {
		return logs
	}
	for _, f := range append(files, filepath.Join(n.Dir, "agent.log")) {
		if text := tail(f, 16<<10); text != "" {
			logs[filepath.Base(f)] = text
		}
	}
	return logs
}

func list(env map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		if env[k] != "" {
			out = append(out, k+"="+env[k])
		}
	}
	return out
}

// tail returns the last bytes of a file, or the error that prevented it.
func tail(path string, size int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(0, info.Size()-size)
	b := make([]byte, info.Size()-from)
	read, err := f.ReadAt(b, from)
	if read < len(b) {
		return err.Error()
	}
	return string(b)
}
