package whatif

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/ipam"
)

// Bounds are the highest targets to try; MINIMUM_IP_TARGET is at most max-pods.
type Bounds struct{ WarmIP, MinimumIP, WarmENI, WarmPrefix int }

// DefaultBounds are those of cnictl capacity recommend.
func DefaultBounds(nodes []Node) Bounds {
	b := Bounds{WarmIP: 64, WarmENI: 4, WarmPrefix: 8}
	for _, n := range nodes {
		b.MinimumIP = max(b.MinimumIP, n.Settings.Room()+limits.HostPods)
	}
	return b
}

// Candidates returns the settings of the first node with other targets: only targets that
// the nodes' modes obey, and of candidates that the planner treats alike only the first.
// If the node's own targets are among them, they come first, and so outrank equally good
// ones.
func Candidates(nodes []Node, b Bounds) (out []Settings) {
	s := nodes[0].Settings
	s.WarmIP, s.MinimumIP = 0, 0
	enis, prefixes := []int{s.WarmENI}, []int{s.WarmPrefix}
	if slices.ContainsFunc(nodes, func(n Node) bool { return !n.Settings.prefixes() }) {
		enis = upTo(0, b.WarmENI)
	}
	if slices.ContainsFunc(nodes, func(n Node) bool { return n.Settings.prefixes() }) {
		prefixes = upTo(1, b.WarmPrefix) // the entrypoint refuses 0 without another target
	}
	for _, e := range enis {
		for _, p := range prefixes {
			spare := s
			spare.WarmENI, spare.WarmPrefix = e, p
			out = append(out, spare)
		}
	}
	for w := 1; w <= b.WarmIP; w++ { // 0 acts like 1: a pool without a free address is always too low
		for m := range b.MinimumIP + 1 {
			if m > 0 && m <= w {
				continue // the spare addresses are as many already
			}
			s.WarmIP, s.MinimumIP = w, m
			out = append(out, s)
		}
	}
	if i := slices.IndexFunc(out, func(c Settings) bool { return c.targets() == nodes[0].Settings.targets() }); i > 0 {
		own := out[i]
		copy(out[1:], out[:i])
		out[0] = own
	}
	return out
}

func upTo(least, most int) (out []int) {
	for i := least; i <= most; i++ {
		out = append(out, i)
	}
	return out
}

// Point is the outcome of a candidate.
type Point struct {
	Index    int // of the candidate
	Settings Settings
	Result   Result
	requests []int // of each node
}

func (r *Run) point(i int, s Settings) Point { return Point{i, s, r.Result(), r.requests()} }

func (p Point) cost() (held float64, calls int) { return p.Result.Held.Avg, p.Result.Calls.Requests() }

// rounding is the relative error that a sum may have.
const rounding = 1e-9

// Search finds the candidates that no other candidate beats in both addresses held and
// requests to EC2, among those with at most a given number of failed ADDs. The outcome is
// the same as playing the load to its end, under our model, on nodes with each candidate's
// targets. With a [CallBound], the candidates with which a node exceeds it are kept apart: they
// beat no others. Three things save most of that work:
//
//   - The least that a candidate holds is known beforehand ([Settings.least]). It is not tried
//     once another one holds less than that without any request.
//   - A trial ends as soon as it has held, together with the least that it will still hold, more
//     than another candidate in all, with no fewer requests.
//   - A MINIMUM_IP_TARGET that pods and WARM_IP_TARGET exceed at all times changes nothing: if
//     the nodes settle as they do without it, the rest is the same.
//
// A Search is not safe for concurrent use, but its trials can be played concurrently.
type Search struct {
	nodes      []Node
	load       Load
	lows       []low
	failed     int
	bound      CallBound
	candidates []Settings

	queue  []int               // candidates, in the order of floors
	floors []float64           // the least that each of the queue holds, on average; ascending
	next   int                 // of the queue
	begun  int                 // trials that are not yet added
	front  []Point             // within the bound; never modified in place
	above  []Point             // the same of those above it
	close  *Point              // while both are empty, the point with the fewest failed ADDs
	plain  map[targets][]start // how nodes settle without MINIMUM_IP_TARGET
}

type targets struct{ warmENI, warmIP, minimumIP, warmPrefix int }

func (s Settings) targets() targets { return targets{s.WarmENI, s.WarmIP, s.MinimumIP, s.WarmPrefix} }

// NewSearch prepares a search. played has played the load to its end on the nodes: which
// pods arrive at and leave which node is the same with all targets.
func NewSearch(played *Run, nodes []Node, candidates []Settings, failed int, bound CallBound) *Search {
	s := &Search{nodes: nodes, load: played.load, lows: played.lows, failed: failed, bound: bound, candidates: candidates, plain: map[targets][]start{}}
	floors := make([]float64, len(candidates))
	for i, c := range candidates {
		s.queue = append(s.queue, i)
		floors[i] = s.least(With(nodes, c), 0) / s.load.For.Seconds()
	}
	slices.SortStableFunc(s.queue, func(a, b int) int { return cmp.Compare(floors[a], floors[b]) })
	for _, i := range s.queue {
		s.floors = append(s.floors, floors[i])
	}
	return s
}

// Front returns the candidates that no tried candidate beats, those with the fewest
// addresses first. Those above the bound come only before the others: with fewer addresses.
func (s *Search) Front() []Point {
	if len(s.front) == 0 {
		return s.above
	}
	least := s.front[0].Result.Held.Avg
	n := slices.IndexFunc(s.above, func(p Point) bool { return p.Result.Held.Avg >= least })
	if n < 0 {
		n = len(s.above)
	}
	return slices.Concat(s.above[:n], s.front)
}

// none reports whether no tried candidate has few enough failed ADDs.
func (s *Search) none() bool { return len(s.front)+len(s.above) == 0 }

// Closest returns the candidate with the fewest failed ADDs, and of these the one with the
// fewest addresses, if all have too many; nil if there is a front or none has been tried.
func (s *Search) Closest() *Point {
	if !s.none() {
		return nil
	}
	return s.close
}

// Left is how many candidates may still have to be tried, including those being tried.
func (s *Search) Left() int { return s.rest() + s.begun }

// rest is how many candidates may still have to be started.
func (s *Search) rest() int {
	n := len(s.queue)
	if k := len(s.front); k > 0 {
		if held, calls := s.front[k-1].cost(); calls == 0 {
			n, _ = slices.BinarySearch(s.floors, held*(1+rounding))
			for n < len(s.floors) && s.floors[n] <= held*(1+rounding) {
				n++
			}
		}
	}
	return max(0, n-s.next)
}

// Next returns the next trial; false if none is left to start.
func (s *Search) Next() (*Trial, bool) {
	if s.rest() == 0 {
		return nil, false
	}
	i := s.queue[s.next]
	s.next++
	s.begun++
	t := &Trial{search: s, index: i, nodes: With(s.nodes, s.candidates[i]), front: s.front, above: s.above, failed: s.failed}
	if s.none() {
		t.failed = math.MaxInt
		if s.close != nil {
			t.failed = max(s.failed, s.close.Result.Failed)
		}
	}
	if key := s.candidates[i].targets(); key.warmIP > 0 && key.minimumIP > 0 && idle(t.nodes, s.lows) {
		key.minimumIP = 0
		t.plain = s.plain[key]
	}
	return t, true
}

// Add adds a trial that was played.
func (s *Search) Add(t *Trial) {
	s.begun--
	if c := s.candidates[t.index]; c.MinimumIP == 0 {
		s.plain[c.targets()] = t.start
	}
	switch p := t.point; {
	case !t.ended:
	case p.Result.Failed <= s.failed:
		if _, _, above := p.Above(s.bound); above {
			s.above = insert(s.above, p)
		} else {
			s.front = insert(s.front, p)
		}
	case s.close == nil || p.compare(*s.close) < 0:
		s.close = &p
	}
}

// compare orders points by failed ADDs, then by cost.
func (p Point) compare(q Point) int {
	held, calls := p.cost()
	h, c := q.cost()
	return cmp.Or(cmp.Compare(p.Result.Failed, q.Result.Failed), cmp.Compare(held, h), cmp.Compare(calls, c), cmp.Compare(p.Index, q.Index))
}

// idle reports whether MINIMUM_IP_TARGET never exceeds the pods with an address plus the
// spare addresses: with the pods at the start, and at these lows.
func idle(nodes []Node, lows []low) bool {
	for _, n := range nodes {
		if !n.Settings.idle(min(n.Pods, n.Settings.Room())) {
			return false
		}
	}
	for _, l := range lows {
		if !nodes[l.node].Settings.idle(l.pods) {
			return false
		}
	}
	return true
}

// idle reports whether a node with some pods holds what MINIMUM_IP_TARGET asks for without it.
func (s Settings) idle(pods int) bool { return s.MinimumIP <= min(pods+s.WarmIP, s.most()) }

// least is the least that nodes hold from a moment to the end, in addresses × seconds.
func (s *Search) least(nodes []Node, from time.Duration) (sum float64) {
	held := 0
	for _, n := range nodes {
		pods := min(n.Pods, n.Settings.Room())
		held += n.Settings.least(pods, pods)
	}
	until := func(at time.Duration) {
		if at > from {
			sum += float64(held) * (at - from).Seconds()
			from = at
		}
	}
	for _, l := range s.lows {
		until(l.at)
		n := nodes[l.node]
		pods := min(n.Pods, n.Settings.Room())
		held += n.Settings.least(pods, l.pods) - n.Settings.least(pods, l.before)
	}
	until(s.load.For)
	return sum
}

// most is the number of addresses up to which a pool grows if its targets ask for them.
func (s Settings) most() int {
	if s.MaxPods > 0 {
		return min(s.MaxPods, s.Capacity())
	}
	return s.Capacity()
}

// least is the least number of subnet addresses held by a node that settled with some pods
// and never had fewer than another number since. Our planner releases addresses only while
// no pod waits, and keeps the targets' spare addresses and minimum.
func (s Settings) least(settled, fewest int) int {
	pool := s.pool()
	slots, unit := max(1, pool.Slots), pool.PerSlot
	var spare, minimum int
	switch {
	case s.WarmIP > 0 || s.MinimumIP > 0:
		spare, minimum = s.WarmIP, s.MinimumIP
	case s.prefixes():
		spare = s.WarmPrefix * unit
	default:
		spare = s.WarmENI * slots
	}
	want := func(pods int) int { return max(minimum, pods+max(1, spare)) }
	cidrs := (min(want(settled), want(fewest), s.most()) + unit - 1) / unit
	enis := (cidrs + slots - 1) / slots
	if s.CustomNetworking || s.PrimaryExcluded {
		enis++
	}
	enis = max(1, enis)
	if s.Trunk {
		enis++
	}
	return cidrs*unit + enis
}

// Trial is a candidate to play.
type Trial struct {
	search *Search // only fields that never change
	index  int
	nodes  []Node
	front  []Point
	above  []Point
	failed int     // with more failed ADDs the trial is useless
	plain  []start // if the nodes settle like this, the outcome is known

	start []start
	point Point
	ended bool // the point is the outcome of the full load
}

// Play plays the load, unless and until the outcome is known to be worse than another
// candidate's or the same as one's. It calls going now and then, and stops if that returns
// false: played is false then, and the trial must not be added.
func (t *Trial) Play(going func() bool) (played bool, err error) {
	s := t.search
	r := settled(t.nodes, s.load, Ours)
	if c := s.candidates[t.index]; c.WarmIP > 0 && (c.MinimumIP == 0 || t.plain != nil) {
		for _, n := range r.settled {
			t.start = append(t.start, n.start(r.begun))
		}
		if t.plain != nil && reflect.DeepEqual(t.start, t.plain) {
			return true, r.Err()
		}
	}
	r.plan()
	for step := 0; step%64 != 0 || !t.hopeless(r); step++ {
		if step%1024 == 0 && !going() {
			return false, r.Err()
		}
		if !r.Next() {
			t.point, t.ended = r.point(t.index, s.candidates[t.index]), true
			break
		}
	}
	return true, r.Err()
}

// hopeless reports whether the run will be worse than a point in any case.
func (t *Trial) hopeless(r *Run) bool {
	if r.waits.failed > t.failed {
		return true
	}
	calls, held := r.net.calls.Requests(), r.held.sum+float64(r.held.value)*r.now.Sub(r.held.since).Seconds()
	held = (held + t.search.least(t.nodes, r.Elapsed())) / r.load.For.Seconds()
	beats := func(p Point) bool {
		h, c := p.cost()
		return h*(1+rounding) < held && c <= calls
	}
	if slices.ContainsFunc(t.front, beats) {
		return true
	}
	if !slices.ContainsFunc(t.above, beats) {
		return false
	}
	_, _, above := t.search.bound.above(r.requests(), r.load.For)
	return above
}

// start is how a node settles, as far as that affects what follows.
type start struct {
	enis   []ipam.ENIState
	supply supply
	scaled time.Time
}

func (n *node) start(now time.Time) start {
	out := start{enis: slices.Clone(n.Book.Snapshot().ENIs), supply: *n.supply, scaled: n.LastScaleDown}
	out.supply.network, out.supply.pool = nil, nil
	for i := range out.enis {
		if e := &out.enis[i]; now.Sub(e.AttachedAt) > n.Policy.ENIMinAge {
			e.AttachedAt = time.Time{} // old enough for everything
		}
	}
	if now.Sub(out.scaled) > n.Policy.ScaleDownInterval {
		out.scaled = time.Time{}
	}
	return out
}

// With returns the nodes with the targets of other settings.
func With(nodes []Node, s Settings) []Node {
	out := slices.Clone(nodes)
	for i := range out {
		t := &out[i].Settings
		t.WarmIP, t.MinimumIP, t.WarmENI, t.WarmPrefix = s.WarmIP, s.MinimumIP, s.WarmENI, s.WarmPrefix
	}
	return out
}

// insert returns the front with a point added, unless another one is as good, and without
// those that the point beats. Of equally good points the one of the first candidate stays,
// in whatever order they come.
func insert(front []Point, p Point) []Point {
	held, calls := p.cost()
	for _, q := range front {
		if h, c := q.cost(); h <= held && c <= calls && (h < held || c < calls || q.Index < p.Index) {
			return front
		}
	}
	out := slices.DeleteFunc(slices.Clone(front), func(q Point) bool { h, c := q.cost(); return held <= h && calls <= c })
	i, _ := slices.BinarySearchFunc(out, p, func(a, b Point) int { return cmp.Compare(a.Result.Held.Avg, b.Result.Held.Avg) })
	return slices.Insert(out, i, p)
}
