package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/fleet/watch"
	"cnictl/daemon/kubeclient"
)

// Defaults of Config.
const (
	DefaultNamespace = "kube-system"
	DefaultSelector  = "k8s-app=aws-node"
	DefaultContainer = "aws-node"
	DefaultPort      = 61679 // of the introspection server
	MetricsPort      = 61678
)

// ViaAuto is the Config.Via that follows the daemon's settings: port-forward, or exec if the
// daemon listens on a Unix socket.
const ViaAuto = "auto"

// The rate of requests, excluding tunnels.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// Config of a Cluster. Rest and Now are required.
type Config struct {
	Rest         *rest.Config // its Timeout is ignored
	Namespace    string       // of the DaemonSet; "" = DefaultNamespace
	Selector     string       // of its pods; "" = DefaultSelector
	NodeSelector string       // labels of nodes; "" = all
	Nodes        []string     // names of nodes; nil = all
	Via          string       // auto, port-forward, exec, proxy; "" = auto
	Tunnel       tunnel.Options
	UserAgent    string
	Now          func() time.Time
}

// Error is a failure and its reason.
type Error = tunnel.Error

// Pod is a pod as Kubernetes lists it.
type Pod = watch.Pod

// Cluster reads one cluster. It is safe for concurrent use.
type Cluster struct {
	cfg     Config
	api     *api
	probe   *api // its connections are separate and not kept
	tunnels *tunnel.Dialer
}

// Connect builds the clients; it does not connect to anything.
func Connect(cfg Config) (*Cluster, error) {
	if cfg.Rest == nil || cfg.Now == nil {
		return nil, errors.New("connect to cluster: Rest and Now are required")
	}
	cfg.Namespace, cfg.Selector = orElse(cfg.Namespace, DefaultNamespace), orElse(cfg.Selector, DefaultSelector)
	cfg.Via = orElse(cfg.Via, ViaAuto)
	ways := []string{ViaAuto, document.ViaPortForward, document.ViaExec, document.ViaProxy}
	if !slices.Contains(ways, cfg.Via) {
		return nil, fmt.Errorf("connect to cluster: no method %q to reach a node: %s", cfg.Via, strings.Join(ways, ", "))
	}
	cfg.Rest = rest.CopyConfig(cfg.Rest)
	cfg.Rest.Timeout = 0 // would end watches and tunnels; contexts limit each request
	if cfg.UserAgent != "" {
		cfg.Rest.UserAgent = cfg.UserAgent
	}
	a, err := newAPI(cfg.Rest)
	if err != nil {
		return nil, err
	}
	dial := cfg.Rest.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	apart := rest.CopyConfig(cfg.Rest)
	apart.Dial = dial // clients whose config has a dialer never share connections
	probe, err := newAPI(apart)
	if err != nil {
		return nil, err
	}
	tunnels, err := tunnel.New(cfg.Rest, cfg.Tunnel)
	if err != nil {
		return nil, err
	}
	return &Cluster{cfg: cfg, api: a, probe: probe, tunnels: tunnels}, nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Close closes idle connections. Watches end with their contexts, tunnels when closed.
func (c *Cluster) Close() {
	c.api.close()
	c.tunnels.Close()
}

// Requests returns the number of requests made to the API server, including tunnels.
func (c *Cluster) Requests() uint64 {
	return c.api.requests.Load() + c.probe.requests.Load() + c.tunnels.Requests()
}

// Answers asks the API server for its version over a new connection: nil if it answers, whatever
// the answer. A server that is shutting down may still answer over existing connections, but
// accepts no new one.
func (c *Cluster) Answers(ctx context.Context) error {
	defer c.probe.close()
	body, err := c.probe.open(ctx, http.MethodGet, tunnel.Request{Verb: "get", Resource: "version"}, "/version", nil, nil)
	var refused *Error
	switch {
	case err == nil:
		return body.Close()
	case errors.As(err, &refused) && refused.Code != 0:
		return nil
	}
	return err
}

// Tunnels returns the dialer of streams to pods of this cluster.
func (c *Cluster) Tunnels() *tunnel.Dialer { return c.tunnels }

// Daemon returns the pod that runs the daemon, from a target's Object.
func Daemon(o *document.NodeObject) (tunnel.Pod, bool) {
	if o == nil || o.Daemon == nil {
		return tunnel.Pod{}, false
	}
	return tunnel.Pod{Namespace: o.Daemon.Namespace, Name: o.Daemon.Name}, true
}

// Pods lists the pods of a node, by namespace and name.
func (c *Cluster) Pods(ctx context.Context, node string) ([]Pod, error) {
	var out []Pod
	err := list(ctx, c.api, KindPods, "", Selection{Fields: "spec.nodeName=" + node}, func(p podObject) { out = append(out, c.whole(&p)) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, nil
}

// AllPods lists the pods of all nodes, and those not yet bound to a node. If the cluster has more
// than watch.MaxClusterPods, it lists only those without an address.
func (c *Cluster) AllPods(ctx context.Context, find watch.PodQuery) (*watch.ClusterPods, error) {
	return c.allPods(ctx, find, watch.MaxClusterPods)
}

func (c *Cluster) allPods(ctx context.Context, find watch.PodQuery, most int) (*watch.ClusterPods, error) {
	out := &watch.ClusterPods{Pods: []Pod{}, At: c.cfg.Now()}
	add := func(p podObject) { out.Pods = append(out.Pods, p.pod()) }
	switch {
	case find.IP.IsValid():
		err := list(ctx, c.api, KindPods, find.Namespace, Selection{Fields: "status.podIP=" + find.IP.String()}, add)
		return out, err
	case find.Name != "":
		err := list(ctx, c.api, KindPods, find.Namespace, Selection{Fields: "metadata.name=" + find.Name}, add)
		if err != nil || len(out.Pods) > 0 {
			return out, err
		}
	}
	err := listUpTo(ctx, c.api, KindPods, find.Namespace, Selection{}, kubeclient.Limits{Objects: most, Within: within}, add)
	var many *kubeclient.TooManyError
	if errors.As(err, &many) {
		out.Pods, out.WithoutOnly = out.Pods[:0], true
		err = list(ctx, c.api, KindPods, find.Namespace, Selection{Fields: "status.podIP="}, add)
	}
	out.Pods = slices.DeleteFunc(out.Pods, func(p Pod) bool { return !find.Matches(p) })
	return out, err
}

// WatchPods passes the pods of all nodes to replace, at first and after a gap, and then each change
// to set and unset, until ctx ends, or the API server refuses, or has more than
// watch.MaxClusterPods. It costs one list, which the API server answers from its cache, and one
// watch. Calls are never concurrent. While a failed watch is retried, trouble is called with the
// reason, and with nil once it works again.
func (c *Cluster) WatchPods(ctx context.Context, replace func([]Pod), set, unset func(Pod), trouble func(error)) error {
	return c.watchPods(ctx, watch.MaxClusterPods, replace, set, unset, trouble)
}

func (c *Cluster) watchPods(ctx context.Context, most int, replace func([]Pod), set, unset func(Pod), trouble func(error)) error {
	f := &follower[podRow]{
		c: c, kind: KindPods, most: most, cached: true, trouble: trouble,
		begin: func() (func(podRow), func()) {
			pods := []Pod{}
			return func(p podRow) { pods = append(pods, p.Pod) }, func() { replace(pods) }
		},
		set:   func(p podRow) { set(p.Pod) },
		unset: func(p podRow) { unset(p.Pod) },
	}
	if err := f.run(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// Pod reads one pod and returns it with its node.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (_ Pod, node string, _ error) {
	var doc podObject
	if err := c.api.get(ctx, KindPods, namespace, name, &doc); err != nil {
		return Pod{}, "", err
	}
	return c.whole(&doc), doc.Spec.NodeName, nil
}

// PodNames lists the pods with a given name, in a given namespace, or both; "" = any.
func (c *Cluster) PodNames(ctx context.Context, namespace, name string) ([]introspect.PodRef, error) {
	var s Selection
	if name != "" {
		s.Fields = "metadata.name=" + name
	}
	var out []introspect.PodRef
	err := list(ctx, c.api, KindPods, namespace, s, func(p podObject) {
		out = append(out, introspect.PodRef{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name})
	})
	return out, err
}
