package list

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/watch"
)

// askedEvery is how often pods are listed node by node where they cannot be watched.
const askedEvery = 30 * time.Second

// followed are the pods of the cluster while the trunks are followed: from one list and one watch.
// Where that is refused, or the cluster has too many pods, they are listed node by node, seldom.
type followed struct {
	f   *cli.Factory
	api *kube.Cluster // nil if none

	tried chan struct{} // closed when the pods were listed, or that failed
	once  sync.Once

	mu    sync.Mutex                      // guards pods, known and ended
	pods  map[introspect.PodRef]watch.Pod // those that have or want a branch ENI
	known bool                            // they were listed
	ended bool                            // they are not watched

	waited bool  // fill waited for the first attempt
	last   asked // of the last listing node by node
	at     time.Time
}

func newFollowed(f *cli.Factory, api *kube.Cluster) *followed {
	return &followed{f: f, api: api, tried: make(chan struct{}), pods: map[introspect.PodRef]watch.Pod{}}
}

// run watches the pods until ctx ends or that is impossible.
func (p *followed) run(ctx context.Context) {
	defer p.begin()
	if p.api == nil {
		return
	}
	told := "" // each attempt fails alike
	err := p.api.WatchPods(ctx, func(all []watch.Pod) {
		p.mu.Lock()
		clear(p.pods)
		for _, pod := range all {
			p.put(pod)
		}
		p.known = true
		p.mu.Unlock()
		p.begin()
	}, func(pod watch.Pod) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.put(pod)
	}, func(pod watch.Pod) {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.pods, pod.PodRef)
	}, func(trouble error) {
		text := ""
		if trouble != nil {
			text = access.ClusterError(p.f, "watch pods", trouble).Error()
			p.begin()
		}
		if text != "" && text != told && ctx.Err() == nil {
			p.f.Warn("%s", text)
		}
		told = text
	})
	p.mu.Lock()
	p.ended = err != nil
	p.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		p.f.Warn("%v; pods are read node by node instead, at most every %v", access.ClusterError(p.f, "watch pods", err), askedEvery)
	}
}

// put keeps a pod if it concerns trunks. The caller holds p.mu.
func (p *followed) put(pod watch.Pod) {
	delete(p.pods, pod.PodRef)
	if pod.Wants || pod.PodENI != "" {
		p.pods[pod.PodRef] = pod
	}
}

func (p *followed) begin() { p.once.Do(func() { close(p.tried) }) }

// fill adds the pods to a reading if they are known. It waits for the first attempt to list
// them, but not longer than a command may take: the nodes are shown anyway.
func (p *followed) fill(ctx context.Context, r *trunks) {
	if p.api == nil || len(r.items) == 0 {
		return
	}
	if !p.waited {
		deadline, cancel := p.f.Deadline(ctx)
		select {
		case <-p.tried:
		case <-deadline.Done():
		}
		cancel()
		p.waited = true
	}
	p.mu.Lock()
	known, ended := p.known, p.ended
	p.mu.Unlock()
	switch {
	case ended:
	case known:
		r.fill(p.f, p.watched(r))
		return
	default:
		return
	}
	if now := p.f.Now(); p.at.IsZero() || now.Sub(p.at) >= askedEvery {
		p.last, p.at = r.ask(ctx, p.f, p.api), now
	}
	r.fill(p.f, p.last)
}

// watched returns the pods of a reading's nodes, each in the order of names.
func (p *followed) watched(r *trunks) asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := asked{pods: map[string][]watch.Pod{unbound: nil}}
	for _, item := range r.items {
		a.pods[item.Node] = nil
	}
	for _, pod := range p.pods {
		a.pods[pod.Node] = append(a.pods[pod.Node], pod)
	}
	for _, pods := range a.pods {
		slices.SortFunc(pods, func(a, b watch.Pod) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	return a
}
