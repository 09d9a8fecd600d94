package pagetest

import (
	"context"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/tables"
)

// Start returns the time of a fleet before it first moves.
func Start() time.Time { return time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC) }

// Source is a watch.Source over made-up nodes: a store that is filled with nodes of every kind, the same
// each time, and changes only on request. It may be used from any goroutine.
type Source struct {
	Name      string
	Documents func(node string, want watch.Want, q watch.Query) watch.Detail // nil = errors

	store *store.Store

	mu     sync.Mutex // guards the fields below
	now    time.Time
	nodes  []document.NodeIPAM
	seed   uint64
	stats  watch.Stats
	focus  watch.Focus
	pace   watch.Pace
	called int // calls of Refresh
}

// NewSource makes a fleet of n nodes with a history of steps samples each.
func NewSource(n, steps int) *Source {
	f := &Source{Name: "prod-eu", store: store.New().Prepare(tables.NodeCells), now: Start(), seed: 1}
	f.stats = watch.Stats{Interval: 10 * time.Second, Background: 30 * time.Second, SweepTook: 3200 * time.Millisecond, Tunnels: 16, Samples: 41_200, Failed: 31, LatencyP50: 48 * time.Millisecond, LatencyP99: 212 * time.Millisecond, APIRequests: 2114}
	begin := f.now
	f.now = begin.Add(-time.Duration(steps) * 10 * time.Second)
	for i := range n {
		f.nodes = append(f.nodes, node(i))
	}
	for range steps + 1 {
		f.Step(len(f.nodes))
		f.now = f.now.Add(10 * time.Second)
	}
	f.now = begin
	return f
}

// Step advances n nodes, one after the other, and samples them.
func (f *Source) Step(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range min(n, len(f.nodes)) {
		i := int(f.seed % uint64(len(f.nodes)))
		f.seed++
		sample := move(&f.nodes[i], i, f.seed/uint64(len(f.nodes)), f.now)
		f.store.PutAt(sample, f.now)
	}
}

// Put adds a sample made by the test.
func (f *Source) Put(n document.NodeIPAM) { f.store.PutAt(n, f.Now()) }

// Remove removes a node.
func (f *Source) Remove(name string) { f.store.Remove(name) }

// Wait lets time pass.
func (f *Source) Wait(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// Requested returns what the screens requested: the focus, the pace and how many refreshes.
func (f *Source) Requested() (watch.Focus, watch.Pace, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.focus, f.pace, f.called
}

// SetStats sets what Stats returns.
func (f *Source) SetStats(s watch.Stats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats = s
}

// View implements watch.Source.
func (f *Source) View() *store.View { return f.store.View() }

// Changed implements watch.Source.
func (f *Source) Changed() <-chan struct{} { return f.store.Changed() }

// Focus implements watch.Source.
func (f *Source) Focus(to watch.Focus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.focus = to
}

// Refresh implements watch.Source.
func (f *Source) Refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.called++
}

// Pace implements watch.Source.
func (f *Source) Pace(p watch.Pace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.Interval > 0 {
		f.stats.Interval = p.Interval
	}
	f.pace = p
}

// Detail implements watch.Source.
func (f *Source) Detail(_ context.Context, node string, want watch.Want, q watch.Query) watch.Detail {
	if f.Documents != nil {
		return f.Documents(node, want, q)
	}
	return watch.Detail{Node: node, At: f.Now(), Errors: map[watch.Want]document.NodeError{
		want: {Node: node, Reason: introspect.ReasonNoEndpoint, Message: "the node does not know the path"},
	}}
}

// Stats implements watch.Source.
func (f *Source) Stats() watch.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// Now implements watch.Source.
func (f *Source) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Title implements watch.Source.
func (f *Source) Title() string { return f.Name }
