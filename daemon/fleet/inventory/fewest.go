package inventory

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// Fewest returns the smallest set of nodes that alone hold the addresses of at least want blocks: once
// they are gone, these blocks are free. holders has the nodes of each block, as numbers from 0. No set
// has fewer than least nodes, so that the set is the smallest one if it has as many. If ctx ends first,
// the set is the best one found. It is nil if all nodes together hold fewer blocks.
//
// It is a minimum p-union, which is NP-hard. After greedy sets from many starts, the sets of 1, 2, …
// nodes are searched depth first, block by block, until one suffices: what the search has gone through
// is the lower bound.
func Fewest(ctx context.Context, holders [][]int, want int) (set []int, least int) {
	s := newSearch(ctx, holders)
	if want <= 0 || s.total() < want {
		return nil, 0
	}
	best := s.greedy(want)
	all := make([]int, len(s.groups))
	for i := range all {
		all[i] = i
	}
	least = 1
	for ; least < best.size(); least++ {
		if s.extend(newSet(s.nodes), all, nil, want, least) {
			return s.found.members(), least
		}
		if s.stopped {
			break
		}
	}
	return best.members(), least
}

// nodeSet is a set of nodes.
type nodeSet []uint64

func newSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }

func (a nodeSet) add(i int) { a[i/64] |= 1 << (i % 64) }

func (a nodeSet) drop(i int) { a[i/64] &^= 1 << (i % 64) }

func (a nodeSet) size() (n int) {
	for _, w := range a {
		n += bits.OnesCount64(w)
	}
	return n
}

// less is the number of members that b does not have.
func (a nodeSet) less(b nodeSet) (n int) {
	for i, w := range a {
		n += bits.OnesCount64(w &^ b[i])
	}
	return n
}

func (a nodeSet) union(b nodeSet) nodeSet {
	out := slices.Clone(a)
	for i, w := range b {
		out[i] |= w
	}
	return out
}

// compare orders sets by their largest members.
func (a nodeSet) compare(b nodeSet) int {
	for i := range slices.Backward(a) {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return 0
}

func (a nodeSet) meets(b nodeSet) bool {
	for i, w := range a {
		if w&b[i] != 0 {
			return true
		}
	}
	return false
}

func (a nodeSet) members() (out []int) {
	for i, w := range a {
		for ; w != 0; w &= w - 1 {
			out = append(out, i*64+bits.TrailingZeros64(w))
		}
	}
	return out
}

// group is the number of blocks that the same nodes hold.
type group struct {
	set    nodeSet
	weight int
}

// search is what Fewest knows.
type search struct {
	ctx     context.Context //nolint:containedctx // of one call
	nodes   int
	groups  []group
	steps   int
	stopped bool
	found   nodeSet

	credit, share []float64 // by node, see mayHold
	price         []float64
	sums          []float64
}

func newSearch(ctx context.Context, holders [][]int) *search {
	s := &search{ctx: ctx}
	for _, of := range holders {
		for _, n := range of {
			s.nodes = max(s.nodes, n+1)
		}
	}
	for _, of := range holders {
		g := group{newSet(s.nodes), 1}
		for _, n := range of {
			g.set.add(n)
		}
		s.groups = append(s.groups, g)
	}
	slices.SortStableFunc(s.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.set.size(), b.set.size()), a.set.compare(b.set))
	})
	merged := s.groups[:0]
	for _, g := range s.groups {
		if n := len(merged); n > 0 && slices.Equal(merged[n-1].set, g.set) {
			merged[n-1].weight++
			continue
		}
		merged = append(merged, g)
	}
	s.groups = merged
	s.credit, s.share, s.price = make([]float64, s.nodes), make([]float64, s.nodes), make([]float64, s.nodes)
	return s
}

func (s *search) total() (n int) {
	for _, g := range s.groups {
		n += g.weight
	}
	return n
}

// over reports that the time is up.
func (s *search) over() bool {
	const often = 64
	if s.steps++; s.steps%often == 0 && s.ctx.Err() != nil {
		s.stopped = true
	}
	return s.stopped
}

// freed is the number of blocks that a set frees.
func (s *search) freed(set nodeSet) (n int) {
	for _, g := range s.groups {
		if g.set.less(set) == 0 {
			n += g.weight
		}
	}
	return n
}

// greedy returns a small set: from each of the smallest groups on, it adds what costs the fewest nodes
// per block.
func (s *search) greedy(want int) (best nodeSet) {
	const starts = 64
	for i := range min(starts, len(s.groups)) {
		if i > 0 && s.ctx.Err() != nil {
			break
		}
		if set := s.pruned(s.grown(s.groups[i].set, want), want); best == nil || set.size() < best.size() {
			best = set
		}
	}
	return best
}

func (s *search) grown(set nodeSet, want int) nodeSet {
	set = slices.Clone(set)
	for {
		have, next, cost := 0, -1, 0
		for i, g := range s.groups {
			c := g.set.less(set)
			if c == 0 {
				have += g.weight
			} else if next < 0 || c*s.groups[next].weight < cost*g.weight {
				next, cost = i, c
			}
		}
		if have >= want || next < 0 {
			return set
		}
		set = set.union(s.groups[next].set)
	}
}

// pruned drops nodes that are not needed, those with the largest numbers first.
func (s *search) pruned(set nodeSet, want int) nodeSet {
	for _, n := range slices.Backward(set.members()) {
		if set.drop(n); s.freed(set) < want {
			set.add(n)
		}
	}
	return set
}

// extend reports whether a set of at most budget more nodes frees need more blocks, and keeps it in
// found. Only open groups may be freed; those that are shut must not, as other branches free them.
func (s *search) extend(set nodeSet, open, shut []int, need, budget int) bool {
	if s.over() {
		return false
	}
	banned := newSet(s.nodes) // nodes that would free a group that is shut
	for _, i := range shut {
		switch g := s.groups[i].set; g.less(set) {
		case 0:
			return false
		case 1:
			for j, w := range g {
				banned[j] |= w &^ set[j]
			}
		}
	}
	type candidate struct{ group, cost int }
	var list []candidate
	for _, i := range open {
		g := s.groups[i]
		switch cost := g.set.less(set); {
		case cost == 0:
			need -= g.weight
		case cost <= budget && !g.set.meets(banned):
			list = append(list, candidate{i, cost})
		}
	}
	if need <= 0 {
		s.found = set
		return true
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(s.groups[b.group].weight, s.groups[a.group].weight))
	})
	rest, order := 0, make([]int, len(list))
	for i, c := range list {
		rest, order[i] = rest+s.groups[c.group].weight, c.group
	}
	if rest < need || !s.mayHold(set, order, need, budget) {
		return false
	}
	shut = slices.Clip(shut)
	for i, c := range list {
		g := s.groups[c.group]
		if rest < need {
			return false
		}
		if s.extend(set.union(g.set), order[i+1:], append(shut, order[:i]...), need-g.weight, budget-c.cost) {
			return true
		}
		if s.stopped {
			return false
		}
		rest -= g.weight
	}
	return false
}

// mayHold is false if no set of budget more nodes frees need of the open groups. Each group gives its
// nodes credit that adds up to its weight; a set frees at most the credit of its nodes, so at most the
// largest ones. That holds however a group divides its credit: each pass gives less to nodes that had
// much.
func (s *search) mayHold(set nodeSet, open []int, need, budget int) bool {
	const passes = 4
	const rounding = 1e-6
	for i := range s.price {
		s.price[i] = 1
	}
	for range passes {
		clear(s.credit)
		clear(s.share)
		for _, i := range open {
			g, sum := s.groups[i], 0.0
			for j, w := range g.set {
				for w &^= set[j]; w != 0; w &= w - 1 {
					sum += s.price[j*64+bits.TrailingZeros64(w)]
				}
			}
			for j, w := range g.set {
				for w &^= set[j]; w != 0; w &= w - 1 {
					n := j*64 + bits.TrailingZeros64(w)
					part := s.price[n] / sum
					s.credit[n] += float64(g.weight) * part
					s.share[n] = max(s.share[n], part)
				}
			}
		}
		s.sums = s.sums[:0]
		for n, c := range s.credit {
			if c > 0 {
				s.sums = append(s.sums, min(c, float64(need)*s.share[n])) // of need blocks, not of all
				s.price[n] /= c
			}
		}
		slices.Sort(s.sums)
		most := 0.0
		for _, c := range s.sums[max(0, len(s.sums)-budget):] {
			most += c
		}
		if most < float64(need)-rounding {
			return false
		}
	}
	return true
}
