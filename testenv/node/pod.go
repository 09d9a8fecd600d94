package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"cnictl/testenv/network/netns"
	"cnictl/testenv/node/agent"
)

// PluginBinary is the plugin's name in Options.Binaries.
const PluginBinary = "aws-cni"

// PodSpec describes a pod to add. Except for the names, the zero value is what kubelet
// and containerd pass.
type PodSpec struct {
	Namespace, Name string
	UID             string         // default: derived from the container id
	ContainerID     string         // default: a new one
	Plugin          string         // path; default: PluginBinary in Options.Binaries
	Config          map[string]any // changes to the network configuration; nil values remove keys
	Env             []string       // of the plugin, in addition to the runtime's
}

// Pod is a pod sandbox with its network namespace.
type Pod struct {
	PodSpec
	IfName string
	Netns  *netns.NS // nil after the namespace is removed
	Path   string    // of the namespace, inside the node

	Result json.RawMessage // what ADD printed; passed to DEL as prevResult
	IP     netip.Addr      // first address of Result
	Add    agent.Result    // exit status, output and times of ADD
}

// PluginError is an error that a plugin reported.
type PluginError struct {
	Command string
	Exit    int // exit status
	Code    int // CNI error code, 0 if the output is not a CNI error
	Msg     string
	Details string
	Output  string // stdout and stderr, if the output is not a CNI error
}

func (e *PluginError) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("%s: exit status %d: %s", e.Command, e.Exit, e.Output)
	}
	text := fmt.Sprintf("%s: code %d: %s", e.Command, e.Code, e.Msg)
	if e.Details != "" {
		text += "; " + e.Details // as libcni prints it
	}
	return text
}

// AddPod does what a runtime does for a new pod: create a network namespace with `lo` up,
// then run the plugin's ADD. If ADD fails it runs DEL and removes the namespace, as
// containerd does.
func (n *Node) AddPod(spec PodSpec) (*Pod, error) {
	p, err := n.NewSandbox(spec)
	if err != nil {
		return nil, err
	}
	if err := n.Add(p); err != nil {
		return nil, errors.Join(fmt.Errorf("add pod %s/%s: %w", spec.Namespace, spec.Name, err), n.DelPod(p))
	}
	return p, nil
}

// NewSandbox creates a pod's namespace without running the plugin.
func (n *Node) NewSandbox(spec PodSpec) (*Pod, error) {
	n.mu.Lock()
	n.pods++
	number := n.pods
	n.mu.Unlock()
	if spec.ContainerID == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s/%s %d", n.InstanceID, spec.Namespace, spec.Name, number))
		spec.ContainerID = hex.EncodeToString(sum[:])
	}
	if spec.UID == "" {
		spec.UID = uidOf(spec.ContainerID)
	}
	if spec.Plugin == "" {
		spec.Plugin = filepath.Join(n.opts.Binaries, PluginBinary)
	}
	name := fmt.Sprintf("cni-%d", number)
	ns, err := n.agent.AddNetns(name)
	if err != nil {
		return nil, fmt.Errorf("add pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	return &Pod{PodSpec: spec, IfName: "eth0", Netns: ns, Path: filepath.Join("/var/run/netns", name)}, nil
}

// Add runs the plugin's ADD and keeps its result in the pod.
func (n *Node) Add(p *Pod) error {
	r, err := n.RunPlugin(p, "ADD", nil)
	p.Add = r
	if err != nil {
		return err
	}
	p.Result = r.Stdout
	if p.IP, err = firstAddress(r.Stdout); err != nil {
		return fmt.Errorf("ADD result: %w", err)
	}
	return nil
}

// DelPod runs the plugin's DEL with the result of ADD and removes the namespace,
// even if DEL fails.
func (n *Node) DelPod(p *Pod) error {
	_, err := n.RunPlugin(p, "DEL", p.Result)
	if err = errors.Join(err, n.RemoveSandbox(p)); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// RemoveSandbox removes a pod's namespace without running the plugin. The kernel
// removes the namespace's links shortly afterwards.
func (n *Node) RemoveSandbox(p *Pod) error {
	if p.Netns == nil {
		return nil
	}
	err := errors.Join(p.Netns.Close(), n.agent.RemoveNetns(p.Netns.Name))
	p.Netns = nil
	return err
}

// RunPlugin runs one CNI command for a pod; callers may repeat commands and run them in any
// order. If the plugin itself fails, the error is a *PluginError and the result is valid.
func (n *Node) RunPlugin(p *Pod, command string, prevResult json.RawMessage) (agent.Result, error) {
	stdin, err := p.stdin(n.opts.paths().Logs, prevResult)
	if err != nil {
		return agent.Result{}, fmt.Errorf("%s: make network configuration: %w", command, err)
	}
	r, err := n.agent.Run(agent.Cmd{Argv: []string{p.Plugin}, Env: append(n.PluginEnv(p, command), p.Env...), Stdin: stdin})
	if err != nil {
		return r, fmt.Errorf("%s: %w", command, err)
	}
	if r.Code != 0 || r.TimedOut {
		return r, pluginError(command, r)
	}
	return r, nil
}

// PluginEnv is the environment that a runtime gives a plugin.
func (n *Node) PluginEnv(p *Pod, command string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"CNI_COMMAND=" + command,
		"CNI_CONTAINERID=" + p.ContainerID,
		"CNI_IFNAME=" + p.IfName,
		"CNI_PATH=" + n.opts.Binaries,
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + p.Namespace + ";K8S_POD_NAME=" + p.Name +
			";K8S_POD_INFRA_CONTAINER_ID=" + p.ContainerID + ";K8S_POD_UID=" + p.UID,
	}
	return append(env, "CNI_NETNS="+p.Path)
}

// stdin returns the network configuration, as recorded from a runtime with the shipped
// conflist (libcni sorts the keys).
func (p *Pod) stdin(logs string, prevResult json.RawMessage) ([]byte, error) {
	config := map[string]any{
		"cniVersion":         "0.4.0",
		"name":               "aws-cni",
		"type":               PluginBinary,
		"mtu":                "9001",
		"vethPrefix":         "eni",
		"podSGEnforcingMode": "strict",
		"pluginLogFile":      filepath.Join(logs, "plugin.log"),
		"pluginLogLevel":     "DEBUG",
		"runtimeConfig":      map[string]any{"io.kubernetes.cri.pod-annotations": map[string]any{}},
	}
	if prevResult != nil {
		config["prevResult"] = prevResult
	}
	maps.Copy(config, p.Config)
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == nil })
	return json.Marshal(config)
}

// Ping pings from a pod.
func (p *Pod) Ping(to netip.Addr, timeout time.Duration) error {
	return p.Netns.Ping(netip.Addr{}, to, timeout)
}

// PingFrom pings an address from a pod.
func (n *Node) PingFrom(p *Pod, to netip.Addr, timeout time.Duration) error {
	return p.Ping(to, timeout)
}

func firstAddress(result []byte) (netip.Addr, error) {
	var r struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return netip.Addr{}, err
	}
	if len(r.IPs) == 0 {
		return netip.Addr{}, fmt.Errorf("no address in %q", result)
	}
	return r.IPs[0].Address.Addr(), nil
}

func pluginError(command string, r agent.Result) *PluginError {
	e := &PluginError{Command: command, Exit: r.Code}
	var said struct {
		Code    int    `json:"code"`
		Msg     string `json:"msg"`
		Details string `json:"details"`
	}
	if err := json.Unmarshal(r.Stdout, &said); err != nil || said.Code == 0 {
		e.Output = fmt.Sprintf("stdout %q, stderr %q", r.Stdout, r.Stderr)
		return e
	}
	e.Code, e.Msg, e.Details = said.Code, said.Msg, said.Details
	return e
}

// uidOf derives a pod UID from a container id.
func uidOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
