package inventory

import (
	"cmp"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// By is what addresses are summed up by.
type By string

// What addresses can be summed up by.
const (
	ByNamespace By = "namespace"
	ByOwner     By = "owner" // of the pod: a Deployment, StatefulSet, DaemonSet, Job
	ByGroup     By = "group" // managed node group or node pool
	BySubnet    By = "subnet"
	ByNode      By = "node"
)

// Bys lists them.
func Bys() []By { return []By{ByNamespace, ByOwner, ByGroup, BySubnet, ByNode} }

// OfPods reports whether pods decide it, so that a node's free addresses have to be shared out.
func (b By) OfPods() bool { return b == ByNamespace || b == ByOwner }

// UseKey is one namespace, owner and so on; the zero UseKey stands for what is not known, and for warm
// addresses of nodes without pods.
type UseKey struct{ Namespace, Name string }

// AddressUse is what one UseKey takes of the pools.
type AddressUse struct {
	UseKey
	Assigned int     // addresses of its pods
	Warm     float64 // free addresses of pools: of each node, its share of the assigned ones
	Nodes    int     // on which it has addresses
}

// Summing says what to sum up.
type Summing struct {
	By        By
	Namespace string                                          // only this one's pods; "" = all
	Owner     func(node string, pod introspect.PodRef) string // for ByOwner: KIND/NAME; "" = unknown
}

// Uses sums up the addresses of nodes, most addresses first. Addresses of a pool that are assigned, but
// whose pod is not known, count for the zero UseKey.
func (s Summing) Uses(nodes []*store.Node) []AddressUse {
	by := map[UseKey]*AddressUse{}
	for _, n := range nodes {
		s.node(n, func(k UseKey, assigned int, warm float64) {
			u := by[k]
			if u == nil {
				u = &AddressUse{UseKey: k}
				by[k] = u
			}
			u.Assigned, u.Warm = u.Assigned+assigned, u.Warm+warm
			if assigned > 0 || k != (UseKey{}) {
				u.Nodes++
			}
		})
	}
	out := make([]AddressUse, 0, len(by))
	for _, u := range by {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b AddressUse) int {
		return cmp.Or(cmp.Compare(b.Assigned, a.Assigned), cmp.Compare(b.Warm, a.Warm), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// node passes on what each UseKey has on one node, once per UseKey.
func (s Summing) node(n *store.Node, add func(k UseKey, assigned int, warm float64)) {
	if !n.Known {
		return
	}
	pools := []pool{{free: n.Free, assigned: n.Assigned}}
	in := func(document.AddressItem) *pool { return &pools[0] }
	if s.By == BySubnet {
		pools, in = bySubnet(n)
	}
	for i := range pools {
		pools[i].count = map[UseKey]int{}
	}
	for _, a := range n.Pods(nil) {
		p := in(a)
		p.named++
		if s.Namespace == "" || a.PodNamespace == s.Namespace {
			p.count[s.key(n, a)]++
		}
	}
	sums := map[UseKey]*AddressUse{}
	for _, p := range pools {
		s.share(n, p, func(k UseKey, assigned int, warm float64) {
			if sums[k] == nil {
				sums[k] = &AddressUse{UseKey: k}
			}
			sums[k].Assigned, sums[k].Warm = sums[k].Assigned+assigned, sums[k].Warm+warm
		})
	}
	for k, u := range sums {
		add(k, u.Assigned, u.Warm)
	}
}

// pool is what a node has, or what it has in one subnet.
type pool struct {
	subnet         string
	free, assigned int
	named          int // addresses with a record
	count          map[UseKey]int
}

// bySubnet divides the pool of a node.
func bySubnet(n *store.Node) ([]pool, func(document.AddressItem) *pool) {
	var pools []pool
	of := func(subnet string) *pool {
		i := slices.IndexFunc(pools, func(p pool) bool { return p.subnet == subnet })
		if i < 0 {
			i, pools = len(pools), append(pools, pool{subnet: subnet})
		}
		return &pools[i]
	}
	for _, e := range n.Interfaces() {
		p := of(e.SubnetID)
		p.free, p.assigned = p.free+e.Free, p.assigned+e.Assigned
	}
	for _, a := range n.Pods(nil) { // of an ENI that has gone since
		of(a.SubnetID)
	}
	return pools, func(a document.AddressItem) *pool { return of(a.SubnetID) }
}

// share divides the free addresses of a pool among those who have its others.
func (s Summing) share(n *store.Node, p pool, add func(k UseKey, assigned int, warm float64)) {
	all := max(p.assigned, p.named)
	for k, count := range p.count {
		add(k, count, float64(p.free)*float64(count)/float64(all))
	}
	if s.Namespace != "" {
		return
	}
	rest := s.key(n, document.AddressItem{SubnetID: p.subnet})
	if unnamed := all - p.named; unnamed > 0 {
		add(rest, unnamed, float64(p.free)*float64(unnamed)/float64(all))
	}
	if all == 0 && p.free > 0 {
		add(rest, 0, float64(p.free))
	}
}

// key returns who has an address.
func (s Summing) key(n *store.Node, a document.AddressItem) UseKey {
	switch s.By {
	case ByNamespace:
		return UseKey{Name: a.PodNamespace}
	case ByOwner:
		if a.PodName == "" {
			return UseKey{}
		}
		return UseKey{Namespace: a.PodNamespace, Name: s.Owner(n.Metadata.Name, introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName})}
	case ByGroup:
		_, group := store.NodeGroup(n.Object)
		return UseKey{Name: group}
	case BySubnet:
		return UseKey{Name: a.SubnetID}
	case ByNode:
		return UseKey{Name: n.Metadata.Name}
	}
	return UseKey{}
}

// InSubnet returns the namespaces whose pods have addresses in a subnet, most addresses first.
func InSubnet(nodes []*store.Node, subnet string) []document.NamespaceUse {
	by := map[string]*document.NamespaceUse{}
	for _, n := range nodes {
		here := map[string]bool{}
		for _, a := range n.Pods(nil) {
			if a.SubnetID != subnet {
				continue
			}
			u := by[a.PodNamespace]
			if u == nil {
				u = &document.NamespaceUse{Namespace: a.PodNamespace}
				by[a.PodNamespace] = u
			}
			if u.Assigned++; !here[a.PodNamespace] {
				here[a.PodNamespace] = true
				u.Nodes++
			}
		}
	}
	out := make([]document.NamespaceUse, 0, len(by))
	for _, u := range by {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b document.NamespaceUse) int {
		return cmp.Or(cmp.Compare(b.Assigned, a.Assigned), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// Hours sums up for how long addresses were assigned, from the samples of nodes in the order of their
// time, and how many there were at the beginning. While a node cannot be read, it counts as last read. A
// recording has the addresses of a node only now and then: before the first time, they count as divided
// like then.
type Hours struct {
	of     Summing
	from   time.Time
	last   map[string]heldSince
	unread map[string]*unread // by node, until its addresses are read
	sum    map[UseKey]float64
	start  map[UseKey]float64
}

// heldSince is what a node had since a time.
type heldSince struct {
	since    time.Time
	count    map[UseKey]int
	read     time.Time // when its addresses were read
	assigned int
}

// unread is what a node had before it was known whose it was.
type unread struct{ sum, start float64 }

// NewHours starts with nothing. Samples up to from make the beginning.
func NewHours(of Summing, from time.Time) *Hours {
	return &Hours{of, from, map[string]heldSince{}, map[string]*unread{}, map[UseKey]float64{}, map[UseKey]float64{}}
}

// Sample adds a sample of a node; nil if it is gone.
func (h *Hours) Sample(name string, n *store.Node, at time.Time) {
	was, known := h.last[name]
	if n != nil && (!n.Known || known && n.AddressesAt().Equal(was.read) && n.Assigned == was.assigned) {
		return
	}
	h.until(name, at)
	if n == nil {
		delete(h.last, name)
		return
	}
	now := heldSince{at, map[UseKey]int{}, n.AddressesAt(), n.Assigned}
	h.of.node(n, func(k UseKey, assigned int, _ float64) { now.count[k] += assigned })
	h.last[name] = now
	if (h.of.By.OfPods() || h.of.Namespace != "") && now.read.IsZero() {
		if h.unread[name] == nil {
			h.unread[name] = &unread{}
			if !known && !at.After(h.from) {
				h.unread[name].start = float64(n.Assigned)
			}
		}
		return
	}
	if !known && !at.After(h.from) {
		for k, n := range now.count {
			h.start[k] += float64(n)
		}
	}
	h.divide(name, now)
}

// divide divides what a node had before its addresses were first read.
func (h *Hours) divide(name string, now heldSince) {
	was := h.unread[name]
	if was == nil {
		return
	}
	delete(h.unread, name)
	all := 0
	for _, n := range now.count {
		all += n
	}
	all = max(all, now.assigned) // of all namespaces
	for k, n := range now.count {
		if n > 0 {
			part := float64(n) / float64(all)
			h.sum[k], h.start[k] = h.sum[k]+part*was.sum, h.start[k]+part*was.start
		}
	}
}

// until adds what a node had up to a time.
func (h *Hours) until(name string, at time.Time) {
	was, known := h.last[name]
	if hours := at.Sub(was.since).Hours(); known && hours > 0 {
		if u := h.unread[name]; u != nil {
			u.sum += float64(was.assigned) * hours
		} else {
			for k, n := range was.count {
				h.sum[k] += float64(n) * hours
			}
		}
		was.since = at
		h.last[name] = was
	}
}

// End returns the address-hours up to a time, and how many addresses were assigned at the beginning.
func (h *Hours) End(at time.Time) (hours, start map[UseKey]float64) {
	for name := range h.last {
		h.until(name, at)
	}
	for _, u := range h.unread {
		if h.of.Namespace == "" {
			h.sum[UseKey{}], h.start[UseKey{}] = h.sum[UseKey{}]+u.sum, h.start[UseKey{}]+u.start
		}
	}
	clear(h.unread)
	return h.sum, h.start
}
