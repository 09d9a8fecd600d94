package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
)

// Store is the state of a watched fleet. Its methods may be called from any goroutine; one
// lock guards everything, as a sample holds it only for microseconds.
type Store struct {
	mu      sync.Mutex
	nodes   []*Node // in the order of byName
	sums    sums
	subnets subnets
	newest  time.Time
	gen     uint64

	readings map[string]Readings // by subnet

	keepENIs bool
	derive   func(*Node) any // nil: nothing

	view    atomic.Pointer[View] // of its Generation, which may be old
	stale   atomic.Bool          // view is out of date
	changed chan struct{}
}

// New makes an empty store.
func New() *Store {
	s := &Store{changed: make(chan struct{}, 1), readings: map[string]Readings{}}
	s.view.Store(&View{})
	return s
}

// Another makes an empty store that keeps and derives the same.
func (s *Store) Another() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := New()
	other.keepENIs, other.derive = s.keepENIs, s.derive
	return other
}

// Of returns a view of nodes that were read once.
func Of(items []document.NodeIPAM) *View {
	s := New()
	for _, n := range items {
		s.Put(n)
	}
	return s.View()
}

// KeepENIs makes nodes keep the ENIs of their samples with all addresses, for callers that
// record complete samples. Call it before the first Put. Otherwise those from our daemon are
// dropped once counted: they take more memory than everything else, and are read again for a
// node on the screen. Those from upstream stay, as it must not be read often.
func (s *Store) KeepENIs() *Store {
	s.keepENIs = true
	return s
}

// Prepare derives something of each node once, when it is put, for readers who need it again and
// again: Node.Derived returns it. derive must not keep or change the node.
func (s *Store) Prepare(derive func(*Node) any) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.derive = derive
	for i, n := range s.nodes {
		prepared := *n
		prepared.derived = derive(n)
		s.nodes[i] = &prepared
	}
	if len(s.nodes) > 0 {
		s.touch()
	}
	return s
}

// Changed fires after a change, once for all changes since the last receive.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// Put stores a sample. A failed one has no time and gets that of the newest sample of all
// nodes; see PutAt.
func (s *Store) Put(n document.NodeIPAM) { s.PutAt(n, time.Time{}) }

// PutAt stores a sample that was taken, or failed, at the given time by the caller's clock.
func (s *Store) PutAt(n document.NodeIPAM, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !at.IsZero():
	case n.SampledAt != nil && n.Summary != nil:
		at = *n.SampledAt
	default:
		at = s.newest
	}
	i, found := s.find(n.Metadata.Name)
	var before *Node
	if found {
		before = s.nodes[i]
	}
	now := next(before, n, at)
	if s.derive != nil {
		now.derived = s.derive(now)
	}
	if !s.keepENIs && now.Source != document.SourceV1 {
		now.NodeIPAM.ENIs = nil
	}
	if found {
		s.sums.add(before, -1)
		s.subnets.replace(now.Metadata.Name, before.uses, now.uses)
		s.nodes[i] = now
	} else {
		s.subnets.replace(now.Metadata.Name, nil, now.uses)
		s.nodes = slices.Insert(s.nodes, i, now)
	}
	s.heard(now.uses)
	s.sums.add(now, 1)
	if at.After(s.newest) {
		s.newest = at
	}
	s.touch()
}

// Remove forgets a node.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.find(name)
	if !found {
		return
	}
	s.sums.add(s.nodes[i], -1)
	s.subnets.replace(name, s.nodes[i].uses, nil)
	s.nodes = slices.Delete(s.nodes, i, i+1)
	s.touch()
}

// Take replaces the contents with those of another store, which must not be used afterwards.
// Generations continue.
func (s *Store) Take(from *Store) {
	from.mu.Lock()
	nodes, sums, subnets, newest, readings := from.nodes, from.sums, from.subnets, from.newest, from.readings
	from.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes, s.sums, s.subnets, s.newest, s.readings = nodes, sums, subnets, newest, readings
	s.touch()
}

// Node returns the current state of a node; nil if none.
func (s *Store) Node(name string) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := s.find(name); found {
		return s.nodes[i]
	}
	return nil
}

func (s *Store) find(name string) (int, bool) { return find(s.nodes, name) }

func find(nodes []*Node, name string) (int, bool) {
	return slices.BinarySearchFunc(nodes, name, byName)
}

// byName is the order of nodes in a Store and a View.
func byName(n *Node, name string) int { return human.Natural(n.Metadata.Name, name) }

// touch records a change. The caller holds s.mu.
func (s *Store) touch() {
	s.gen++
	s.stale.Store(true)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// View returns the current state of the fleet: the same View until something changes.
func (s *Store) View() *View {
	if !s.stale.Load() {
		return s.view.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stale.Load() {
		return s.view.Load()
	}
	v := &View{Generation: s.gen, At: s.newest, Nodes: slices.Clone(s.nodes), Totals: s.sums.totals()}
	v.Subnets = make([]SubnetUse, len(s.subnets))
	for i, subnet := range s.subnets {
		v.Subnets[i] = subnet.use()
		v.Subnets[i].Readings = s.readings[v.Subnets[i].ID]
	}
	s.view.Store(v)
	s.stale.Store(false)
	return v
}
