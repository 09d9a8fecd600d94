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

// kubernetes joins the API server with the keeper: what changes there is posted. Nothing
// waits for it: a daemon without an API server serves what it knows, and what needs an
// object waits for that object alone.
type kubernetes struct {
	*kube.Client
	log    *slog.Logger
	config config.Config
	owner  *owner

	reached  atomic.Bool
	missed   atomic.Bool                  // told that it cannot be reached
	lost     atomic.Bool                  // it cannot be reached, as far as the watches know
	node     atomic.Pointer[cluster.Node] // nil: not read yet
	podsSeen chan struct{}                // the pods have changed
	selected chan struct{}                // what an ENIConfig depends on has changed
	features chan struct{}                // the CNINode has to be looked at
}

// newKubernetes builds the API client. Without a usable configuration the daemon serves
// without one, as the original does in its ordinary modes: nil. Modes that cannot do
// without must not start: a pod would get an address that its security groups are not on.
func newKubernetes(d Deps, log *slog.Logger) (*kubernetes, error) {
	c := d.Config
	client, err := kube.New(kube.Options{
		NodeName: c.NodeName, PodName: c.PodName, Kubeconfig: c.Kubeconfig, Endpoint: c.ClusterEndpoint,
		UserAgent: "aws-k8s-agent-" + c.ReleaseVersion, Log: log,
		Pods: c.NodeName != "", CNINode: c.PodENI, ENIConfigs: c.CustomNetworking,
	})
	if err != nil && c.APIServerMandatory() {
		return nil, fmt.Errorf("%s cannot work without the API server, and there is no way to it: %w: give the pod its service account with a token, or set KUBECONFIG to a file that can be used",
			strings.Join(modesWithAPIServer(c), ", "), err)
	}
	if err != nil {
		log.Warn("Proceeding without API server connectivity", slog.Any(logline.KeyError, err))
		return nil, nil
	}
	return &kubernetes{
		Client: client, log: log, config: c,
		podsSeen: make(chan struct{}, 1), selected: make(chan struct{}, 1), features: make(chan struct{}, 1),
	}, nil
}

// modesWithAPIServer names the settings that are on and make the API server mandatory.
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

// greet asks the API server who it is and tells the answer, once. Nothing waits for it.
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
		a.log.Info(fmt.Sprintf(textAPIReached, version), slog.String(logline.KeyVersion, version)) //nolint:sloglint // the original's line
	}
}

// failed tells once that the API server does not answer.
func (a *kubernetes) failed(err error) {
	if !a.reached.Load() && !a.missed.Swap(true) {
		a.log.Warn(textAPIUnreachable, slog.Any(logline.KeyError, err))
	}
}

// watchers are the goroutines that follow the API server.
func (a *kubernetes) watchers() []func(context.Context) {
	out := []func(context.Context){a.watch, a.countPods}
	if a.config.CustomNetworking {
		out = append(out, a.followENIConfig)
	}
	if a.config.PodENI {
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
				a.log.Warn("API server lost, going on with what is known", slog.Any(logline.KeyError, err))
				return
			}
			a.failed(err)
		},
	})
}

func (a *kubernetes) nodeChanged(ctx context.Context, n cluster.Node) {
	a.node.Store(&n)
	_ = a.owner.post(ctx, keeper.NodeRead{ // only fails when ctx ends
		MaxPods: n.MaxPods, BranchENIs: n.PodENIs, Source: "node", Unschedulable: n.Unschedulable,
	})
	signal(a.selected)
}

// podsDebounce joins changes of pods: a deployment binds dozens at once.
const podsDebounce = 20 * time.Millisecond

// countPods tells the keeper which pods will ask for an address.
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
				pod.Interfaces = 2 // how many is the keeper's to know
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

// eniConfigAgain is how soon an ENIConfig that could not be read is asked for again.
const eniConfigAgain = 2 * time.Second

// followENIConfig tells the keeper the ENIConfig that the Node selects, each time that one
// of them changes.
func (a *kubernetes) followENIConfig(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-a.selected:
		case <-again:
		case <-ctx.Done():
			return
		}
		again = nil
		node := a.node.Load()
		if node == nil {
			continue // its arrival is a change
		}
		name := cluster.ENIConfigName(*node, a.config.ENIConfigAnnotation, a.config.ENIConfigLabel)
		found, err := a.ENIConfig(ctx, name)
		m := keeper.ENIConfigRead{Name: name, Config: found, Err: err}
		if err != nil {
			m.Unread = !errors.Is(err, kube.ErrNotFound) && !errors.Is(err, kube.ErrInvalid)
			again = time.After(eniConfigAgain)
		}
		_ = a.owner.post(ctx, m) // only fails when ctx ends
		signal(a.features)
	}
}

// signal wakes whoever waits, once for any number of signals.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits. It is false when ctx ended first.
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
