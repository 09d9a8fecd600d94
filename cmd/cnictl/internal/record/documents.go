package record

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Limits on what is read besides the samples. A round takes a few requests per node, so in a
// large fleet only the nodes with problems are read, the worst first.
const (
	documentsEvery  = 30 * time.Second
	documentsNodes  = 32
	documentsAtOnce = 4
	wiredPods       = 4 // per node and round: each takes a request
)

// rounds reads documents of nodes, one round at a time.
type rounds struct {
	fleet Fleet
	every time.Duration
	begun time.Time   // of the last round's start
	seen  *store.View // then
	out   chan watch.Detail
	busy  chan struct{} // holds one element while a round runs

	mu    sync.Mutex // guards the fields below
	after map[string]place
}

// place is how far a node's data were read.
type place struct {
	events watch.EventsAfter
	logs   time.Time
	kube   time.Time
	wired  map[introspect.PodRef]bool
}

func newRounds(l Fleet, every time.Duration) *rounds {
	return &rounds{
		fleet: l, every: max(every, documentsEvery), out: make(chan watch.Detail), busy: make(chan struct{}, 1),
		after: map[string]place{}, seen: &store.View{},
	}
}

// begin starts a round in the group if one is due. Results arrive on r.out.
func (r *rounds) begin(ctx context.Context, group *errgroup.Group, v *store.View, now time.Time) {
	if !r.begun.IsZero() && now.Sub(r.begun) < r.every || !anyRead(v) {
		return
	}
	select {
	case r.busy <- struct{}{}:
	default:
		return
	}
	r.forget(v)
	r.begun, r.seen = now, v
	group.Go(func() error {
		defer func() { <-r.busy }()
		var readers errgroup.Group
		readers.SetLimit(documentsAtOnce)
		for _, n := range worth(v) {
			readers.Go(func() error {
				r.read(ctx, n, now)
				return nil
			})
		}
		return readers.Wait()
	})
}

// forget drops the places of nodes that left since the last round: if such a node comes back, its
// data are read from the beginning, as the recording has dropped them.
func (r *rounds) forget(v *store.View) {
	_, gone := v.Since(r.seen)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range gone {
		delete(r.after, name)
	}
}

// worth returns the nodes whose documents are recorded: those that respond, the worst first.
func worth(v *store.View) []*store.Node {
	var out []*store.Node
	for _, n := range v.Nodes {
		if n.SampledAt != nil && n.Error == nil {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b *store.Node) int { return cmp.Compare(rank(a), rank(b)) })
	return out[:min(len(out), documentsNodes)]
}

func rank(n *store.Node) int {
	if n.Severity == "" {
		return 3
	}
	return n.Severity.Rank()
}

// read reads what is new on a node since the last time.
func (r *rounds) read(ctx context.Context, n *store.Node, now time.Time) {
	name := n.Metadata.Name
	r.mu.Lock()
	at := r.after[name]
	r.mu.Unlock()
	want := watch.WantPods | watch.WantKubeEvents
	if n.Source != document.SourceV1 {
		want |= watch.WantPlan | watch.WantFailures | watch.WantEvents | watch.WantLogs
	}
	d := r.fleet.Detail(ctx, name, want, watch.Query{
		Events: at.events, KubeEventsSince: at.kube, Logs: introspect.LogQuery{Level: "info", Since: at.logs, Lines: introspect.DefaultLogLines},
	})
	if d.Events != nil {
		at.events = watch.EventsAfter{Epoch: d.Events.Epoch, Next: d.Events.Next}
	}
	if d.Logs != nil {
		at.logs = now.Add(-time.Minute) // clocks differ; repeated lines are dropped
	}
	for _, e := range d.KubeEvents {
		if e.At.After(at.kube) {
			at.kube = e.At
		}
	}
	r.give(ctx, d)
	at.wired = r.wiring(ctx, n, at.wired)
	r.mu.Lock()
	r.after[name] = at
	r.mu.Unlock()
}

// wiring reads the kernel's state of some pods of a node that were not read before.
func (r *rounds) wiring(ctx context.Context, n *store.Node, wired map[introspect.PodRef]bool) map[introspect.PodRef]bool {
	now := map[introspect.PodRef]bool{} // without pods that are gone
	fresh := 0
	for _, e := range n.NodeIPAM.ENIs {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				ref := introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName}
				switch {
				case a.State != introspect.AddressAssigned || ref.Name == "" || n.Source == document.SourceV1:
				case wired[ref]:
					now[ref] = true
				case fresh < wiredPods && ctx.Err() == nil:
					fresh++
					now[ref] = true
					r.give(ctx, r.fleet.Detail(ctx, n.Metadata.Name, watch.WantPod, watch.Query{Pod: ref}))
				}
			}
		}
	}
	return now
}

func (r *rounds) give(ctx context.Context, d watch.Detail) {
	select {
	case r.out <- d:
	case <-ctx.Done():
	}
}
