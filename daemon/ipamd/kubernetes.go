package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// kubernetes connects the API server to the keeper by posting changes. Nothing waits for the
// API server: without it the daemon serves from what it knows, and whatever needs an object
// waits for that object alone.
type kubernetes struct {
	*kube.Client
	log    *slog.Logger
	config config.Config
	owner  *owner

	reached  atomic.Bool
	missed   atomic.Bool                  // a failure to reach it has been logged
	lost     atomic.Bool                  // the watches report it as unreachable
	node     atomic.Pointer[cluster.Node] // nil if not read yet
	podsSeen chan struct{}                // the pods have changed
	selected chan struct{}                // something that the choice of ENIConfig depends on has changed
	features chan struct{}                // the CNINode must be checked
	appeared chan struct{}                // a CNINode has appeared
	trunk    bool                         // the node can have a trunk ENI; set by the start
	targets  *targets                     // set by the start
	problem  func(config.Problem)         // reports a setting that cannot take effect; set by the start

	// Only used by the goroutine that receives the changes.
	cniNodeThere bool
	trunkLabel   string
}

// newKubernetes builds the API client. Without a usable configuration it returns nil, and the
// daemon serves without the API server, as upstream does in its ordinary modes. Modes that
// need the API server must not start: a pod would get an address without its security groups.
func newKubernetes(d Deps, log *slog.Logger) (*kubernetes, error) {
	c := d.Config
	client, err := kube.New(kube.Options{
		NodeName: c.NodeName, PodName: c.PodName, Kubeconfig: c.Kubeconfig, Endpoint: c.ClusterEndpoint,
		UserAgent: "aws-k8s-agent-" + c.ReleaseVersion, Log: log,
		Pods: c.NodeName != "", CNINode: c.PodENI, ENIConfigs: c.CustomNetworking,
	})
	if err != nil && c.APIServerMandatory() {
		return nil, fmt.Errorf("%s needs the API server, which is not configured: %w: give the pod a service account with a token, or set KUBECONFIG to a usable file",
			strings.Join(modesWithAPIServer(c), ", "), err)
	}
	if err != nil {
		log.Warn("Proceeding without API server connectivity", slog.Any(logline.KeyError, err))
		return nil, nil
	}
	return &kubernetes{
		Client: client, log: log, config: c,
		podsSeen: make(chan struct{}, 1), selected: make(chan struct{}, 1), features: make(chan struct{}, 1), appeared: make(chan struct{}, 1),
	}, nil
}

// modesWithAPIServer names the enabled settings that require the API server.
func modesWithAPIServer(c config.Config) (on []string) {
	for _, mode := range []struct {
		on       bool
		variable string
	}{
		{c.PodENI, "ENABLE_POD_ENI"}, {c.CustomNetworking, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"}, {c.AnnotatePodIP, "ANNOTATE_POD_IP"},
	} {
		if mode.on {
			on = append(on, mode.variable)
		}
	}
	return on
}

// answered reports whether the API server has answered.
func (a *kubernetes) answered() bool { return a != nil && a.reached.Load() }

// greet asks the API server for its version, once, and logs the answer. Nothing waits for it.
func (a *kubernetes) greet(ctx context.Context) {
	version, err := a.ServerVersion(ctx)
	if err != nil {
		a.failed(err)
		return
	}
	a.welcomed(version)
}

func (a *kubernetes) welcomed(version string) {
	if !a.reached.Swap(true) {
		a.log.Info(fmt.Sprintf(textAPIReached, version), slog.String(logline.KeyVersion, version)) //nolint:sloglint // upstream's line
	}
}

// failed logs once that the API server has not answered yet.
func (a *kubernetes) failed(err error) {
	if !a.reached.Load() && !a.missed.Swap(true) {
		a.log.Warn(textAPISilent, slog.Any(logline.KeyError, err))
	}
}

// away logs upstream's line. A single such line is a fatal finding of the EKS node monitoring
// agent that nothing clears (eks-node-monitoring-agent#215), and EKS or Karpenter may replace the
// node. So it is not written for what passes by itself, such as a kube-proxy that starts after the
// daemon.
func (a *kubernetes) away(err error) {
	if !a.reached.Load() {
		a.log.Warn(textAPIUnreachable, slog.Any(logline.KeyError, err))
	}
}

// watchers returns the goroutines that follow the API server.
func (a *kubernetes) watchers() []func(context.Context) {
	out := []func(context.Context){a.watch, a.countPods}
	if a.config.CustomNetworking {
		out = append(out, a.followENIConfig)
	}
	if a.config.PodENI && a.trunk {
		out = append(out, a.askForTrunk)
	}
	return out
}

// watch follows the node's objects until ctx ends.
func (a *kubernetes) watch(ctx context.Context) {
	a.Run(ctx, kube.Changes{
		Node:       func(n cluster.Node) { a.nodeChanged(ctx, n) },
		ENIConfigs: func() { signal(a.selected) },
		CNINode:    func(n cluster.CNINode, there bool) { a.cniNodeChanged(ctx, n, there) },
		Pods:       func() { signal(a.podsSeen) },
		Reached: func(version string) {
			a.lost.Store(false)
			a.welcomed(version)
			signal(a.podsSeen)
		},
		Lost: func(err error) {
			a.lost.Store(true)
			_ = a.owner.post(ctx, keeper.PodsUnseen{}) // only fails when ctx ends
			if a.reached.Load() {
				a.log.Warn("API server unreachable, continuing with cached objects", slog.Any(logline.KeyError, err))
				return
			}
			a.failed(err)
		},
		Away: a.away,
	})
}

func (a *kubernetes) nodeChanged(ctx context.Context, n cluster.Node) {
	a.node.Store(&n)
	targets, problems := a.targets.label(n.Labels)
	_ = a.owner.post(ctx, keeper.NodeRead{ // only fails when ctx ends
		MaxPods: n.MaxPods, BranchENIs: n.PodENIs, Source: "node", Unschedulable: n.Unschedulable, Targets: &targets,
	})
	for _, p := range problems {
		a.problem(p)
	}
	a.trunkLabelled(ctx, n.Labels[trunkLabel])
	signal(a.selected)
}

// A label in which older VPC resource controllers report the state of the trunk ENI.
// It is read and never written.
const (
	trunkLabel       = "vpc.amazonaws.com/has-trunk-attached"
	trunkAttached    = "true"
	trunkUnsupported = "not-supported"
)

// trunkLabelled handles a change of the label.
func (a *kubernetes) trunkLabelled(ctx context.Context, value string) {
	was := a.trunkLabel
	if a.trunkLabel = value; was == value {
		return
	}
	if was == trunkUnsupported || value == trunkUnsupported {
		_ = a.owner.post(ctx, keeper.TrunkRefused{Refused: value == trunkUnsupported}) // only fails when ctx ends
	}
	if value == trunkAttached {
		_ = a.owner.post(ctx, keeper.TrunkHinted{Attached: true}) // only fails when ctx ends
	}
}

// podsDebounce batches changes of pods: a deployment binds dozens at once.
const podsDebounce = 20 * time.Millisecond

// countPods reports to the keeper which pods will ask for an address.
func (a *kubernetes) countPods(ctx context.Context) {
	for {
		select {
		case <-a.podsSeen:
		case <-ctx.Done():
			return
		}
		var pods []ipam.Pod
		_, known := a.ExpectedPods(func(p cluster.Pod) bool {
			if !p.Expects(a.config.PodENI) {
				return false
			}
			pod := ipam.Pod{Namespace: p.Namespace, Name: p.Name}
			if p.MultiNIC {
				pod.Interfaces = 2 // the keeper knows the exact number
			}
			pods = append(pods, pod)
			return true
		})
		if known {
			_ = a.owner.post(ctx, keeper.PodsBound{Pods: pods}) // only fails when ctx ends
		}
		if !pause(ctx, podsDebounce) {
			return
		}
	}
}

// How soon an ENIConfig that could not be read is requested again. The watches report changes
// of the ENIConfig and of the Node.
const eniConfigFirst, eniConfigMost = 2 * time.Second, time.Minute

// eniConfigReading is the state of reading the ENIConfig.
type eniConfigReading struct {
	clock keeper.BackoffTimer
	name  *string // the one last read
	good  string  // the last usable one
}

// followENIConfig passes the ENIConfig that the Node selects to the keeper, whenever either of
// them changes.
func (a *kubernetes) followENIConfig(ctx context.Context) {
	if a.config.NodeName == "" {
		_ = a.owner.post(ctx, keeper.ENIConfigRead{ // only fails when ctx ends
			Err: errors.New("the Node cannot be read, so the ENIConfig that it selects is unknown: MY_NODE_NAME is not set; set it from the pod's field spec.nodeName"),
		})
		return
	}
	var r eniConfigReading
	again := time.After(nodeWaitLimit) // unless the watch shows the Node
	for {
		select {
		case <-a.selected:
		case <-again:
		case <-ctx.Done():
			return
		}
		again = nil
		if wait := a.readENIConfig(ctx, &r, time.Now()); wait > 0 {
			again = time.After(wait)
		}
	}
}

// readENIConfig reads the ENIConfig and returns when to read it again; 0 means on a change.
func (a *kubernetes) readENIConfig(ctx context.Context, r *eniConfigReading, now time.Time) time.Duration {
	node, blind := a.node.Load(), false
	if node == nil {
		n, err := a.Node(ctx)
		if err != nil {
			if kube.Refused(err) { // otherwise it is unreachable, which is temporary
				_ = a.owner.post(ctx, keeper.ENIConfigRead{Err: fmt.Errorf("the Node cannot be read, so the ENIConfig that it selects is unknown: %w", err)}) // only fails when ctx ends
			}
			return r.again(now)
		}
		node, blind = &n, true
	}
	name := cluster.ENIConfigName(*node, a.config.ENIConfigAnnotation, a.config.ENIConfigLabel)
	found, err := a.ENIConfig(ctx, name)
	m := keeper.ENIConfigRead{Name: name, Config: found, Err: err}
	if err != nil {
		m.Unread = !errors.Is(err, kube.ErrNotFound) && !errors.Is(err, kube.ErrInvalid) && (r.good == name || !kube.Refused(err))
	}
	_ = a.owner.post(ctx, m) // only fails when ctx ends
	if r.name == nil || *r.name != name {
		r.name = &name
		signal(a.features)
	}
	if err != nil {
		return r.again(now)
	}
	r.clock, r.good = keeper.BackoffTimer{}, name
	if blind {
		return eniConfigMost
	}
	return 0
}

// again returns the delay before the next attempt after a failure.
func (r *eniConfigReading) again(now time.Time) time.Duration {
	r.clock.Fail(now, now, "", eniConfigFirst, eniConfigMost, jitter)
	return r.clock.Until.Sub(now)
}

// signal wakes the receiver, once for any number of signals.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
