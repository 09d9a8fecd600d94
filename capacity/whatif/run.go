package whatif

import (
	"container/heap"
	"math"
	"slices"
	"time"
)

// Node is a node at the start of a run: settled with its pods.
type Node struct {
	Settings Settings
	Pods     int
}

// AnyNode makes pods arrive on the node with the fewest, as the scheduler spreads them,
// and leave any node.
const AnyNode = -1

// Step makes pods arrive or, if Pods is negative, makes any pods of the node leave.
type Step struct {
	At   time.Duration // after the start
	Node int           // or AnyNode
	Pods int
}

// Load is what happens to the nodes: steps ordered by time.
type Load struct {
	Steps []Step
	For   time.Duration
	Seed  uint64 // determines which pods leave
	Free  int    // free addresses of the nodes' subnet at the start; below 0: enough
}

// Result is what a run has measured so far.
type Result struct {
	For    time.Duration // of simulated time
	Held   Spread        // addresses of the subnet, over all nodes
	Wasted Spread        // of these, addresses for pods that no pod uses
	Calls  Calls

	ADDs      int           // answered ones
	Waited    int           // ADDs that did not get an address immediately
	Failed    int           // ADDs that waited too long, and were repeated
	Waiting   int           // pods still waiting at the end
	TotalWait time.Duration // total waiting time of pods
	Longest   time.Duration // longest waiting time of a pod
	Unplaced  int           // pods for which no node had room
}

// PerHour converts a count of the run to one per hour.
func (r Result) PerHour(n int) float64 {
	if r.For <= 0 {
		return 0
	}
	return float64(n) / r.For.Hours()
}

// low records that a node has fewer pods than ever before in the run.
type low struct {
	at                 time.Duration
	node, pods, before int
}

// Run plays a load on nodes, event by event. Its zero value is not usable.
type Run struct {
	model Model
	load  Load
	nodes []*node
	queue wakeups
	rnd   *Random
	next  int // step
	now   time.Time
	begun time.Time
	lows  []low

	settled []*node // one of each group of identical nodes

	net network
	tally
	of []*tally // by node: the run's own tally, or its group's
}

// tally is what a run has measured on some nodes.
type tally struct {
	all          *tally // the tally that includes these nodes too; nil if none
	held, wasted meter
	calls        Calls
	waits        struct {
		adds, waited, failed, unplaced int
		sum, longest                   time.Duration
	}
}

func (t *tally) begin(at time.Time, nodes ...*node) {
	t.held.begin(at)
	t.wasted.begin(at)
	for _, n := range nodes {
		t.held.value += n.supply.held
		t.wasted.value += n.wasted()
	}
}

// NewRun returns a run whose nodes have settled.
func NewRun(nodes []Node, load Load, m Model) *Run {
	r := settled(nodes, load, m)
	r.plan()
	return r
}

// plan runs all planners.
func (r *Run) plan() {
	for i := range r.nodes {
		r.replan(i)
	}
}

// settled returns a run whose planners have not run since the nodes settled.
func settled(nodes []Node, load Load, m Model) *Run {
	r := &Run{model: m, load: load, rnd: Stream(load.Seed, 2)}
	most := 0
	for _, n := range nodes {
		most = max(most, n.Pods)
	}
	r.begun = epoch.Add(time.Duration(most+10) * time.Minute) // fill takes a minute for each pod
	r.now = r.begun
	first := map[alike]*node{}
	for i, start := range nodes {
		seed, key := load.Seed+uint64(i), start.alike()
		n := first[key]
		if n == nil {
			n = newNode(start.Settings, m, &r.net, epoch, seed)
			n.fill(min(start.Pods, n.room))
			n.Now = r.begun
			n.settle()
			first[key] = n
			r.settled = append(r.settled, n)
		} else {
			n = n.copied(seed)
		}
		n.fewest = len(n.pods)
		r.nodes = append(r.nodes, n)
		r.queue.at = append(r.queue.at, time.Time{})
		r.queue.pos = append(r.queue.pos, -1)
	}
	r.net = network{bounded: load.Free >= 0, free: load.Free}
	r.begin(r.begun, r.nodes...)
	r.of = slices.Repeat([]*tally{&r.tally}, len(r.nodes))
	return r
}

// Next plays the next event and reports whether there was one.
func (r *Run) Next() bool {
	end := r.begun.Add(r.load.For)
	at, step := end, false
	if r.next < len(r.load.Steps) {
		if t := r.begun.Add(r.load.Steps[r.next].At); !t.After(at) {
			at, step = t, true
		}
	}
	if r.queue.Len() > 0 {
		if i := r.queue.order[0]; r.queue.at[i].Before(at) || !step && r.queue.at[i].Equal(at) && at.Before(end) {
			r.now = r.queue.at[i]
			r.wake(i)
			return true
		}
	}
	r.now = at
	if step {
		r.play(r.load.Steps[r.next])
		r.next++
	}
	return step
}

// Err returns the first error, which is a bug in this package; nil if none.
func (r *Run) Err() error {
	for _, n := range r.nodes {
		if n.Err != nil {
			return n.Err
		}
	}
	return nil
}

// touch advances a node to the present, applies what, and runs the planner.
func (r *Run) touch(i int, what func(*node)) {
	n := r.nodes[i]
	held, wasted, calls := n.supply.held, n.wasted(), r.net.calls
	n.Now = r.now
	what(n)
	n.calls += r.net.calls.Requests() - calls.Requests()
	for _, p := range n.serve() {
		r.answered(i, p)
	}
	for t := r.of[i]; t != nil; t = t.all {
		t.held.add(r.now, n.supply.held-held)
		t.wasted.add(r.now, n.wasted()-wasted)
		t.calls = t.calls.plus(r.net.calls, +1).plus(calls, -1)
	}
	r.replan(i)
}

func (r *Run) replan(i int) {
	n := r.nodes[i]
	n.Start()
	at, _ := n.wakes()
	r.queue.set(i, at)
}

// wake ends an operation of a node, or lets its planner run.
func (r *Run) wake(i int) {
	r.touch(i, func(n *node) {
		if _, op := n.wakes(); op >= 0 {
			n.ended(n.Finish(op))
		}
	})
}

// answered counts the ADDs of a pod that has got an address or has left.
func (r *Run) answered(i int, p pod) {
	for t := r.of[i]; t != nil; t = t.all {
		t.waits.adds++
		if p.waits {
			t.waited(r.model, r.now.Sub(p.since))
		}
	}
}

// waited counts a pod that waited.
func (t *tally) waited(m Model, d time.Duration) {
	t.waits.waited++
	t.waits.failed += m.failures(d)
	t.waits.sum += d
	t.waits.longest = max(t.waits.longest, d)
}

// Group makes a run that has not started also count per group of nodes: of is the group of
// each node, from 0. [Run.Groups] returns the results.
func (r *Run) Group(of []int) {
	groups := make([]*tally, slices.Max(of)+1)
	for i, g := range of {
		if groups[g] == nil {
			groups[g] = &tally{all: &r.tally}
			groups[g].begin(r.begun)
		}
		groups[g].held.value += r.nodes[i].supply.held
		groups[g].wasted.value += r.nodes[i].wasted()
		r.of[i] = groups[g]
	}
}

func (r *Run) play(s Step) {
	if len(r.nodes) == 0 {
		r.waits.unplaced += max(0, s.Pods)
		return
	}
	for range s.Pods {
		i := s.Node
		if i == AnyNode {
			i = r.emptiest()
		}
		if len(r.nodes[i].pods) >= r.nodes[i].room {
			for t := r.of[i]; t != nil; t = t.all {
				t.waits.unplaced++
			}
			continue
		}
		r.touch(i, func(n *node) {
			r.churned(n)
			n.add()
			if p := n.pods[len(n.pods)-1]; !p.waits {
				r.answered(i, p)
			}
		})
	}
	for range -s.Pods {
		i := s.Node
		if i == AnyNode {
			i = r.anyPod()
		}
		if i < 0 || len(r.nodes[i].pods) == 0 {
			continue
		}
		r.touch(i, func(n *node) {
			r.churned(n)
			if p := n.drop(); p.waits {
				r.answered(i, p)
			}
		})
		if n := r.nodes[i]; len(n.pods) < n.fewest {
			r.lows = append(r.lows, low{r.Elapsed(), i, len(n.pods), n.fewest})
			n.fewest = len(n.pods)
		}
	}
}

// churned notes that a pod is about to come to or leave a node.
func (r *Run) churned(n *node) {
	c := &n.churn
	if c.since.IsZero() {
		c.since = r.begun
	}
	c.sum += float64(len(n.pods)) * r.now.Sub(c.since).Seconds()
	c.since = r.now
}

// churning returns the nodes to which pods came or from which they went, and by node how many
// pods to expect: those that it has on average.
func (r *Run) churning() map[int]int {
	out := map[int]int{}
	for i, n := range r.nodes {
		if n.churn.since.IsZero() {
			continue
		}
		c := n.churn
		out[i] = len(n.pods)
		if d := r.Elapsed().Seconds(); d > 0 {
			out[i] = int(math.Round((c.sum + float64(len(n.pods))*r.now.Sub(c.since).Seconds()) / d))
		}
	}
	return out
}

// emptiest is the node with the fewest pods among those that have room.
func (r *Run) emptiest() int {
	best := 0
	for i, n := range r.nodes {
		if b := r.nodes[best]; len(n.pods) < n.room && (len(n.pods) < len(b.pods) || len(b.pods) >= b.room) {
			best = i
		}
	}
	return best
}

// anyPod is the node of a random pod; -1 if there are no pods.
func (r *Run) anyPod() int {
	sum := 0
	for _, n := range r.nodes {
		sum += len(n.pods)
	}
	if sum == 0 {
		return -1
	}
	k := r.rnd.Below(sum)
	for i, n := range r.nodes {
		if k -= len(n.pods); k < 0 {
			return i
		}
	}
	return -1
}

// Elapsed is the simulated time since the start.
func (r *Run) Elapsed() time.Duration { return r.now.Sub(r.begun) }

// Result returns what the run has measured so far. Waiting pods count as if they stopped
// waiting now.
func (r *Run) Result() Result { return r.result(&r.tally, func(int) bool { return true }) }

// requests returns the requests to EC2 of each node.
func (r *Run) requests() (out []int) {
	for _, n := range r.nodes {
		out = append(out, n.calls)
	}
	return out
}

// Groups returns the results of the groups of nodes.
func (r *Run) Groups() (out []Result) {
	for i, t := range r.of {
		if !slices.Contains(r.of[:i], t) {
			out = append(out, r.result(t, func(i int) bool { return r.of[i] == t }))
		}
	}
	return out
}

func (r *Run) result(of *tally, counts func(node int) bool) Result {
	t, waiting := *of, 0
	for i, n := range r.nodes {
		if n.Waiting == 0 || !counts(i) {
			continue
		}
		for _, p := range n.pods {
			if p.waits {
				waiting++
				t.waited(r.model, r.now.Sub(p.since))
			}
		}
	}
	return Result{
		For: r.Elapsed(), Held: of.held.spread(r.now), Wasted: of.wasted.spread(r.now), Calls: t.calls,
		ADDs: t.waits.adds, Waited: t.waits.waited, Failed: t.waits.failed, Waiting: waiting, TotalWait: t.waits.sum, Longest: t.waits.longest, Unplaced: t.waits.unplaced,
	}
}

// wakeups are the nodes by the time of their next event, the earliest first.
type wakeups struct {
	order []int       // nodes, a heap
	at    []time.Time // by node
	pos   []int       // in order, by node; -1 if absent
}

// set sets the time of a node's next event; zero if none.
func (w *wakeups) set(i int, at time.Time) {
	w.at[i] = at
	switch {
	case at.IsZero() && w.pos[i] >= 0:
		heap.Remove(w, w.pos[i])
	case at.IsZero():
	case w.pos[i] >= 0:
		heap.Fix(w, w.pos[i])
	default:
		heap.Push(w, i)
	}
}

func (w *wakeups) Len() int { return len(w.order) }
func (w *wakeups) Less(a, b int) bool {
	x, y := w.order[a], w.order[b]
	if c := w.at[x].Compare(w.at[y]); c != 0 {
		return c < 0
	}
	return x < y
}
func (w *wakeups) Swap(a, b int) {
	w.order[a], w.order[b] = w.order[b], w.order[a]
	w.pos[w.order[a]], w.pos[w.order[b]] = a, b
}
func (w *wakeups) Push(x any) {
	w.pos[x.(int)] = len(w.order)
	w.order = append(w.order, x.(int))
}
func (w *wakeups) Pop() any {
	last := w.order[len(w.order)-1]
	w.order = w.order[:len(w.order)-1]
	w.pos[last] = -1
	return last
}
