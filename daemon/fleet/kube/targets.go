package kube

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
)

// Targets lists the nodes and the daemon's pods once. The result is sorted by node name.
func (c *Cluster) Targets(ctx context.Context) ([]fleet.Target, error) {
	nodes, pods := map[string]*document.NodeObject{}, map[string]*daemonPod{}
	err := both(ctx,
		func(ctx context.Context) error {
			err := list(ctx, c.api, KindNodes, "", c.nodeSelection(), func(n nodeObject) {
				if c.wants(n.Metadata.Name) {
					nodes[n.Metadata.Name] = n.object()
				}
			})
			return err
		},
		func(ctx context.Context) error {
			err := list(ctx, c.api, KindPods, c.cfg.Namespace, c.daemonSelection(), func(p podObject) {
				if d := p.daemon(); d.better(pods[d.node]) {
					pods[d.node] = &d
				}
			})
			return err
		})
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Target, 0, len(nodes))
	for name, node := range nodes {
		out = append(out, c.target(name, node, pods[name]))
	}
	slices.SortFunc(out, func(a, b fleet.Target) int { return human.Natural(a.Name, b.Name) })
	return out, nil
}

// both runs two functions concurrently; the first error cancels the other.
func both(ctx context.Context, a, b func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	errs := make(chan error, 2)
	for _, do := range []func(context.Context) error{a, b} {
		wait.Go(func() {
			if err := do(ctx); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	wait.Wait()
	close(errs)
	return <-errs
}

// wants reports whether a node is selected.
func (c *Cluster) wants(node string) bool {
	return c.cfg.Nodes == nil || slices.Contains(c.cfg.Nodes, node)
}

func (c *Cluster) nodeSelection() Selection {
	s := Selection{Labels: c.cfg.NodeSelector}
	if len(c.cfg.Nodes) == 1 {
		s.Fields = "metadata.name=" + c.cfg.Nodes[0]
	}
	return s
}

func (c *Cluster) daemonSelection() Selection {
	s := Selection{Labels: c.cfg.Selector}
	if len(c.cfg.Nodes) == 1 {
		s.Fields = "spec.nodeName=" + c.cfg.Nodes[0]
	}
	return s
}

// target builds the target of a node and its daemon's pod, which may be nil.
func (c *Cluster) target(name string, node *document.NodeObject, pod *daemonPod) fleet.Target {
	t := fleet.Target{Name: name, Address: name, Object: node}
	if pod == nil {
		t.State, t.Absent = document.StateNoDaemon, absent(introspect.ReasonNoPod, whyNoPod(node, c.cfg))
		return t
	}
	with := *node // node may be shared with an earlier target
	with.Daemon = new(pod.DaemonPod)
	t.Object, t.Key, t.Env = &with, pod.UID, pod.pool
	if !pod.runs() {
		t.Absent = absent(introspect.ReasonPodNotRunning, fmt.Sprintf("aws-node's pod %s is not running: %s", pod.Name, why(pod)))
		return t
	}
	c.lead(&t, pod)
	return t
}

func absent(reason introspect.Reason, message string) *document.NodeError {
	return &document.NodeError{Reason: reason, Message: message}
}

func whyNoPod(node *document.NodeObject, cfg Config) string {
	switch {
	case node.Labels[computeTypeLabel] == computeFargate:
		return "Fargate nodes do not run aws-node"
	case node.OS == osWindows:
		return "Windows nodes do not run aws-node"
	}
	return fmt.Sprintf("no pod %s of namespace %s is on the node", cfg.Selector, cfg.Namespace)
}

func why(pod *daemonPod) string {
	if pod.trouble == "" || pod.trouble == pod.Phase {
		return pod.Phase
	}
	return pod.Phase + ", " + pod.trouble
}

// lead sets how to reach a running daemon.
func (c *Cluster) lead(t *fleet.Target, pod *daemonPod) {
	where := pod.where()
	share := c.tunnels.Share(where)
	t.Via = c.cfg.Via
	port, unix, known := pod.settings.listens()
	if t.Via == ViaAuto {
		if t.Via = document.ViaPortForward; unix {
			t.Via = document.ViaExec
		}
	}
	t.Metrics = func(ctx context.Context) ([]byte, error) { return metrics(ctx, share.Dial) }
	switch {
	case pod.settings.off:
		t.Dial = c.never("DISABLE_INTROSPECTION is true on aws-node's pod " + pod.Name)
	case t.Via == document.ViaExec:
		t.Dial = func(ctx context.Context) (net.Conn, error) {
			return c.tunnels.Exec(ctx, where, DefaultContainer, dialProgram(pod.settings.bind))
		}
	case unix:
		t.Dial = c.never("INTROSPECTION_BIND_ADDRESS is a Unix socket on aws-node's pod " + pod.Name +
			": --via exec, or cnictl local on the node")
	case !known:
		t.Dial = c.never(fmt.Sprintf("INTROSPECTION_BIND_ADDRESS is %.40q on aws-node's pod %s", pod.settings.bind, pod.Name))
	case t.Via == document.ViaProxy:
		t.Dial = func(ctx context.Context) (net.Conn, error) { return c.tunnels.Proxy(ctx, where, port) }
		t.Metrics = func(ctx context.Context) ([]byte, error) {
			return metrics(ctx, func(ctx context.Context, port uint16) (net.Conn, error) { return c.tunnels.Proxy(ctx, where, port) })
		}
	default:
		t.Dial = func(ctx context.Context) (net.Conn, error) { return share.Dial(ctx, port) }
	}
}

// never returns a dial function for a daemon whose settings make it unreachable; its metrics may
// still be reachable.
func (c *Cluster) never(message string) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		return nil, &Error{Reason: introspect.ReasonOff, Err: fmt.Errorf("%s", message)}
	}
}

// dialProgram returns the command that connects its stdin and stdout to the daemon's server.
func dialProgram(bind string) []string {
	argv := []string{"cnictl", "local", "dial"}
	if bind != "" {
		argv = append(argv, bind)
	}
	return argv
}

// listens returns where the daemon's server listens: its port, or that it uses a Unix socket;
// known is false if the address cannot be parsed.
func (s settings) listens() (port uint16, unix, known bool) {
	switch {
	case s.bind == "":
		return DefaultPort, false, true
	case strings.HasPrefix(s.bind, "unix:"):
		return 0, true, true
	}
	_, text, err := net.SplitHostPort(s.bind)
	if err != nil {
		return 0, false, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), false, err == nil && n > 0
}
