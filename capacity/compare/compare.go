package compare

import (
	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/capacity/whatif"
)

// Demand is the pods to place. Each has an address of the pool.
type Demand struct {
	Pods      int
	MilliCPU  int64 // that each pod requests; 0: any
	MemoryMiB int64 // that each pod requests; 0: any
}

// Bound is what limits the pods of a node.
type Bound string

const (
	ByMaxPods   Bound = "max-pods"
	ByAddresses Bound = "addresses"
	ByCPU       Bound = "cpu"
	ByMemory    Bound = "memory"
)

// Fleet is what the pods need on nodes of one type. Numbers are 0 if Why says why there
// are none.
type Fleet struct {
	MaxPods     int
	PodsPerNode int
	Bound       Bound
	Nodes       int
	MilliCPU    int // per node for pods, after kubeReserved; 0 if unknown
	MemoryMiB   int // the same
	Addresses   int // taken from subnets by all nodes, including those of the interfaces
	Wasted      int // of these, unused by pods, without those of the interfaces
	Why         string
}

// Place spreads the pods evenly over as few nodes of the settings' type as can hold them.
// Pools grow as upstream's do. If max-pods is 0, nodes have the recommended one.
func Place(s whatif.Settings, d Demand) Fleet {
	i := s.Instance
	if s.MaxPods == 0 {
		if i.VCPUs == 0 {
			return Fleet{Why: "vCPUs unknown: give --max-pods"}
		}
		s.MaxPods = recommended(s)
	}
	f := Fleet{MaxPods: s.MaxPods}
	if i.VCPUs > 0 {
		f.MilliCPU = 1000*i.VCPUs - maxpods.KubeReservedMilliCPU(i.VCPUs)
	}
	if i.MemoryMiB > 0 {
		f.MemoryMiB = max(0, i.MemoryMiB-maxpods.KubeReservedMiB(s.MaxPods))
	}
	if d.MilliCPU > 0 && i.VCPUs == 0 || d.MemoryMiB > 0 && i.MemoryMiB == 0 {
		f.Why = "vCPUs or memory unknown: pods with requests cannot be placed"
		return f
	}
	f.PodsPerNode, f.Bound = max(0, s.MaxPods-limits.HostPods), ByMaxPods
	bound := func(n int64, by Bound) {
		if n < int64(f.PodsPerNode) {
			f.PodsPerNode, f.Bound = int(n), by
		}
	}
	bound(int64(s.Capacity()), ByAddresses)
	if d.MilliCPU > 0 {
		bound(int64(f.MilliCPU)/d.MilliCPU, ByCPU)
	}
	if d.MemoryMiB > 0 {
		bound(int64(f.MemoryMiB)/d.MemoryMiB, ByMemory)
	}
	if s.Capacity() == 0 {
		f.Bound = ByAddresses // max-pods follows from these
	}
	if f.PodsPerNode == 0 {
		f.Why = "no pod fits: " + string(f.Bound)
		return f
	}
	f.Nodes = (d.Pods + f.PodsPerNode - 1) / f.PodsPerNode
	if f.Nodes == 0 {
		return f
	}
	fewer, full := d.Pods/f.Nodes, d.Pods%f.Nodes
	f.add(whatif.Grow(s, fewer, whatif.Upstream), f.Nodes-full)
	if full > 0 {
		f.add(whatif.Grow(s, fewer+1, whatif.Upstream), full)
	}
	return f
}

func (f *Fleet) add(h whatif.Held, nodes int) {
	f.Addresses += nodes * h.SubnetAddresses()
	f.Wasted += nodes * h.Wasted()
}

// recommended is our rule's max-pods for plain pods: pods that need a branch ENI are
// not among the pods to place.
func recommended(s whatif.Settings) int {
	return min(s.Capacity()+limits.HostPods, maxpods.Cap(s.Instance.VCPUs))
}

// Types returns the known instance types that match the patterns; a pattern without * or ?
// is one type. unknown is the first pattern that matches nothing.
func Types(table limits.Table, patterns []string) (found []limits.Instance, unknown string) {
	seen := map[string]bool{}
	for _, pattern := range patterns {
		none := true
		for name := range table.Types() {
			if !matches(pattern, name) {
				continue
			}
			none = false
			if i, ok := table.Lookup(name); ok && !seen[name] {
				seen[name] = true
				found = append(found, i)
			}
		}
		if none {
			return nil, pattern
		}
	}
	return found, ""
}
