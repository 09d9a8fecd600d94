package watched

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/evidence"
)

// Source is a watched fleet, or a recording.
type Source interface {
	View() *store.View
	Detail(ctx context.Context, node string, want watch.Want, q watch.Query) watch.Detail
	Now() time.Time
}

const (
	maxDeep = 256              // nodes whose documents are read, the worst first
	atOnce  = 8                // nodes asked at once
	within  = 15 * time.Second // for the documents of one node
)

// wanted are the documents that a node is asked for.
const wanted = watch.WantENIs | watch.WantPlan | watch.WantEvents | watch.WantFailures | watch.WantConfig | watch.WantLogs |
	watch.WantPods | watch.WantKubeEvents | watch.WantContainerLog

// ErrNoNodes means that none of the nodes exists.
var ErrNoNodes = errors.New("there are no such nodes")

// Evidence returns what the source has of the named nodes, of all if none are named. It reads the
// documents of the worst, and reports how many it has read. soFar, unless nil,
// is called with what is known before that, and must not keep it.
func Evidence(ctx context.Context, src Source, scope evidence.Scope, names []string,
	progress func(done, total int, what string), soFar func(*evidence.Evidence)) (*evidence.Evidence, error) {
	view, now := src.View(), src.Now().UTC()
	ev := &evidence.Evidence{At: now, Mode: evidence.ModeLaptop, Scope: scope}
	nodes := chosen(view, names)
	if len(nodes) == 0 {
		return nil, ErrNoNodes
	}
	var deep []int
	for i, n := range nodes {
		ev.Nodes = append(ev.Nodes, evidence.Node{Name: n.Metadata.Name, First: sampled(n, now)})
		deep = append(deep, i) // what was recorded is at hand
	}
	slices.SortStableFunc(deep, func(a, b int) int { return cmp.Compare(nodes[a].Severity.Rank(), nodes[b].Severity.Rank()) })
	deep = deep[:min(len(deep), maxDeep)]
	if soFar != nil {
		soFar(ev)
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	var mu sync.Mutex // guards done
	done := 0
	progress(0, len(deep), "nodes")
	for _, i := range deep {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			want, q := query(scope)
			documents(ev.Nodes[i].First, nodes[i], src.Detail(ctx, ev.Nodes[i].Name, want, q))
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(deep), "nodes")
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return ev, ctx.Err()
}

// chosen returns the nodes of these names or, without names, all those that should run a daemon.
func chosen(v *store.View, names []string) []*store.Node {
	if v == nil {
		return nil
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	return slices.DeleteFunc(slices.Clone(v.Nodes), func(n *store.Node) bool {
		if names == nil {
			return fleet.Excused(n.NodeIPAM)
		}
		return !wanted[n.Metadata.Name]
	})
}

// query also asks for the pod that the scope names.
func query(scope evidence.Scope) (watch.Want, watch.Query) {
	var q watch.Query
	if scope.Pod == "" {
		return wanted, q
	}
	q.Pod.Namespace, q.Pod.Name, _ = strings.Cut(string(scope.Pod), "/")
	return wanted | watch.WantPod, q
}
