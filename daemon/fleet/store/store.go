package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/query"
)

// Store is a fleet that is watched. Its methods may be called from any goroutine: one
// lock guards all, since a sample takes it for microseconds.
type Store struct {
	mu      sync.Mutex
	nodes   []*Node // by name, as query.Natural orders
	sums    sums
	subnets subnets
	newest  time.Time
	gen     uint64

	keepENIs bool

	view    atomic.Pointer[View] // of the generation that it says, or older
	stale   atomic.Bool          // there is something newer than view
	changed chan struct{}
}

// New makes an empty store.
func New() *Store {
	s := &Store{changed: make(chan struct{}, 1)}
	s.view.Store(&View{})
	return s
}

// KeepENIs has nodes keep the ENIs with all addresses of their samples. It is for those
// who record complete samples, and is called before the first Put: without it those of
// our daemon go once they are counted, since they take more room than all the rest and are
// read again for a node that is looked at. Upstream's, which is not to be asked
// often, stay.
func (s *Store) KeepENIs() *Store {
	s.keepENIs = true
	return s
}

// Changed fires after a change, once for all changes since it was last received from.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// Put takes a sample. One that failed has no time of its own: it counts as taken with
// the newest one of all; see PutAt.
func (s *Store) Put(n document.NodeIPAM) { s.PutAt(n, time.Time{}) }

// PutAt takes a sample that was taken, or failed, at a time by the caller's clock.
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

// Take replaces the contents by those of another store, which must not be used any
// more. Generations go on.
func (s *Store) Take(from *Store) {
	from.mu.Lock()
	nodes, sums, subnets, newest := from.nodes, from.sums, from.subnets, from.newest
	from.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes, s.sums, s.subnets, s.newest = nodes, sums, subnets, newest
	s.touch()
}

// Node is the current state of a node; nil if there is none.
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
	return slices.BinarySearchFunc(nodes, name, func(n *Node, name string) int { return query.Natural(n.Metadata.Name, name) })
}

// touch notes a change. The lock is held.
func (s *Store) touch() {
	s.gen++
	s.stale.Store(true)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// View is the fleet now. While nothing changes it is the same one.
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
	}
	s.view.Store(v)
	s.stale.Store(false)
	return v
}
