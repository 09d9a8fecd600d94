package whatif

import (
	"cmp"
	"slices"
)

// Bounds are the most that the targets are tried with (spec/capacity.md §10); MINIMUM_IP_TARGET
// goes to max-pods at most.
type Bounds struct{ WarmIP, MinimumIP, WarmENI, WarmPrefix int }

// DefaultBounds are those of the specification.
func DefaultBounds(s Settings) Bounds {
	return Bounds{WarmIP: 64, MinimumIP: s.Room() + hostPods, WarmENI: 4, WarmPrefix: 8}
}

// Candidates are the settings with other targets: those that the mode obeys, and of those that
// the planner treats alike the first.
func Candidates(s Settings, b Bounds) (out []Settings) {
	s.WarmIP, s.MinimumIP = 0, 0
	spare, least, most := s, 0, b.WarmENI
	target := &spare.WarmENI
	if s.prefixes() { // the entrypoint refuses WARM_PREFIX_TARGET=0 without another target
		target, least, most = &spare.WarmPrefix, 1, b.WarmPrefix
	}
	for *target = least; *target <= most; *target++ {
		out = append(out, spare)
	}
	for w := 1; w <= b.WarmIP; w++ { // 0 is as 1: a pool without a free address is always too low
		for m := range b.MinimumIP + 1 {
			if m > 0 && m <= w {
				continue // what is spare is as much already
			}
			s.WarmIP, s.MinimumIP = w, m
			out = append(out, s)
		}
	}
	return out
}

// Point is an outcome of a candidate.
type Point struct {
	Index    int // of the candidate
	Settings Settings
	Result   Result
}

func (p Point) cost() (held float64, calls int) { return p.Result.Held.Avg, p.Result.Calls.Requests() }

// Search finds the candidates that no other one betters both in addresses held and in
// requests to EC2, among those with at most so many failed ADDs: the fewest addresses first.
// It plays the load on nodes with the candidate's targets, and leaves a run as soon as what
// it has held and requested is more than another one took in all, so that the outcome is that
// of playing all. going is called before each run and returns false to end the search: the
// outcome is then that of the candidates tried.
func Search(nodes []Node, load Load, m Model, candidates []Settings, failed int, going func(tried int) bool) (front []Point, err error) {
	stride := 1
	for _, p := range []int{61, 67, 71, 73} { // spread over the grid: good ones are found early
		if len(candidates)%p != 0 {
			stride = p
			break
		}
	}
	for n := range candidates {
		if !going(n) {
			break
		}
		i := n * stride % len(candidates)
		r := NewRun(with(nodes, candidates[i]), load, m)
		done := true
		for step := 1; r.Next(); step++ {
			if step%64 == 0 && r.hopeless(front, failed) {
				done = false
				break
			}
		}
		if err := r.Err(); err != nil {
			return front, err
		}
		if p := (Point{i, candidates[i], r.Result()}); done && p.Result.Failed <= failed {
			front = insert(front, p)
		}
	}
	return front, nil
}

// with are the nodes with other targets.
func with(nodes []Node, s Settings) []Node {
	out := slices.Clone(nodes)
	for i := range out {
		t := &out[i].Settings
		t.WarmIP, t.MinimumIP, t.WarmENI, t.WarmPrefix = s.WarmIP, s.MinimumIP, s.WarmENI, s.WarmPrefix
	}
	return out
}

// hopeless reports whether the run is worse than a point whatever comes.
func (r *Run) hopeless(front []Point, failed int) bool {
	if r.waits.failed > failed {
		return true
	}
	calls, held := r.net.calls.Requests(), r.held.sum+float64(r.held.value)*r.now.Sub(r.held.since).Seconds()
	held /= r.load.For.Seconds()
	return slices.ContainsFunc(front, func(p Point) bool {
		h, c := p.cost()
		const rounding = 1e-9 // of the sums
		return h*(1+rounding) < held && c <= calls
	})
}

// insert adds a point unless another one is as good, and drops those that it betters.
func insert(front []Point, p Point) []Point {
	held, calls := p.cost()
	for _, q := range front {
		if h, c := q.cost(); h <= held && c <= calls && (h < held || c < calls || q.Index < p.Index) {
			return front
		}
	}
	front = slices.DeleteFunc(front, func(q Point) bool { h, c := q.cost(); return held <= h && calls <= c })
	i, _ := slices.BinarySearchFunc(front, p, func(a, b Point) int { return cmp.Compare(a.Result.Held.Avg, b.Result.Held.Avg) })
	return slices.Insert(front, i, p)
}
