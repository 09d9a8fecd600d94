package whatif

import (
	"container/heap"
	"time"
)

// Node is a node at the start of a run: settled with its pods.
type Node struct {
	Settings Settings
	Pods     int
}

// AnyNode lets pods come to the node that has the fewest, as the scheduler spreads them, and
// go from any.
const AnyNode = -1

// Step lets pods come, or go if there are fewer than 0: any of a node's.
type Step struct {
	At   time.Duration // after the start
	Node int           // or AnyNode
	Pods int
}

// Load is what happens to the nodes: steps in order of time.
type Load struct {
	Steps []Step
	For   time.Duration
	Seed  uint64 // which pods go
	Free  int    // addresses of the nodes' subnet beside those that they hold at the start; below 0: enough
}

// Result is what a run saw until now.
type Result struct {
	For    time.Duration // of the run's own time
	Held   Spread        // addresses of the subnet, over all nodes
	Wasted Spread        // of these, addresses for pods that no pod has
	Calls  Calls

	ADDs     int           // that were answered
	Waited   int           // ADDs that found no address at once
	Failed   int           // ADDs that waited too long, and were repeated
	Waiting  int           // pods that wait at the end
	WaitedBy time.Duration // what pods waited, all together
	Longest  time.Duration // that one of them waited
	Unplaced int           // pods that no node had room for
}

// PerHour is a number of the run as that of an hour.
func (r Result) PerHour(n int) float64 {
	if r.For <= 0 {
		return 0
	}
	return float64(n) / r.For.Hours()
}

// Run plays a load on nodes, event by event. Its zero value is not usable.
type Run struct {
	model Model
	load  Load
	nodes []*node
	queue wakeups
	rnd   *random
	next  int // step
	now   time.Time
	begun time.Time

	net          network
	held, wasted meter
	waits        struct {
		adds, waited, failed, unplaced int
		sum, longest                   time.Duration
	}
}

// NewRun settles the nodes.
func NewRun(nodes []Node, load Load, m Model) *Run {
	r := settled(nodes, load, m)
	for i := range r.nodes {
		r.replan(i)
	}
	return r
}

// settled is a run before its planners are asked first.
func settled(nodes []Node, load Load, m Model) *Run {
	r := &Run{model: m, load: load, rnd: stream(load.Seed, 2)}
	most := 0
	for _, n := range nodes {
		most = max(most, n.Pods)
	}
	r.begun = epoch.Add(time.Duration(most+10) * time.Minute) // fill takes a minute for each pod
	r.now = r.begun
	for i, start := range nodes {
		n := newNode(start.Settings, m, &r.net, epoch, load.Seed+uint64(i))
		n.fill(min(start.Pods, n.room))
		n.Now = r.begun
		n.settle()
		r.nodes = append(r.nodes, n)
		r.queue.at = append(r.queue.at, time.Time{})
		r.queue.pos = append(r.queue.pos, -1)
	}
	r.net = network{bounded: load.Free >= 0, free: load.Free}
	r.held.begin(r.begun)
	r.wasted.begin(r.begun)
	for _, n := range r.nodes {
		r.held.value += n.supply.held
		r.wasted.value += n.wasted()
	}
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

// Err is a mistake of this package, if there was one.
func (r *Run) Err() error {
	for _, n := range r.nodes {
		if n.Err != nil {
			return n.Err
		}
	}
	return nil
}

// touch brings a node to the present, lets something happen to it, and asks the planner.
func (r *Run) touch(i int, what func(*node)) {
	n := r.nodes[i]
	held, wasted := n.supply.held, n.wasted()
	n.Now = r.now
	what(n)
	for _, p := range n.serve() {
		r.answered(p)
	}
	r.held.add(r.now, n.supply.held-held)
	r.wasted.add(r.now, n.wasted()-wasted)
	r.replan(i)
}

func (r *Run) replan(i int) {
	n := r.nodes[i]
	n.Start()
	at, _ := n.wakes()
	r.queue.set(i, at)
}

// wake ends an operation of a node, or lets the planner be asked.
func (r *Run) wake(i int) {
	r.touch(i, func(n *node) {
		if _, op := n.wakes(); op >= 0 {
			n.ended(n.Finish(op))
		}
	})
}

// answered counts the ADDs of a pod that has an address or is gone.
func (r *Run) answered(p pod) {
	r.waits.adds++
	if p.waits {
		d := r.now.Sub(p.since)
		r.waits.waited++
		r.waits.failed += r.model.failures(d)
		r.waits.sum += d
		r.waits.longest = max(r.waits.longest, d)
	}
}

func (r *Run) play(s Step) {
	for range s.Pods {
		i := s.Node
		if i == AnyNode {
			i = r.emptiest()
		}
		if len(r.nodes) == 0 || len(r.nodes[i].pods) >= r.nodes[i].room {
			r.waits.unplaced++
			continue
		}
		r.touch(i, func(n *node) {
			n.add()
			if p := n.pods[len(n.pods)-1]; !p.waits {
				r.answered(p)
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
			if p := n.drop(); p.waits {
				r.answered(p)
			}
		})
	}
}

// emptiest is the node with the fewest pods of those that have room.
func (r *Run) emptiest() int {
	best := 0
	for i, n := range r.nodes {
		if b := r.nodes[best]; len(n.pods) < n.room && (len(n.pods) < len(b.pods) || len(b.pods) >= b.room) {
			best = i
		}
	}
	return best
}

// anyPod is the node of any pod; -1: there is none.
func (r *Run) anyPod() int {
	sum := 0
	for _, n := range r.nodes {
		sum += len(n.pods)
	}
	if sum == 0 {
		return -1
	}
	k := r.rnd.below(sum)
	for i, n := range r.nodes {
		if k -= len(n.pods); k < 0 {
			return i
		}
	}
	return -1
}

// Elapsed is how far the run is.
func (r *Run) Elapsed() time.Duration { return r.now.Sub(r.begun) }

// Result is what the run saw until now. Pods that wait count as if they stopped waiting now.
func (r *Run) Result() Result {
	out := Result{
		For: r.Elapsed(), Held: r.held.spread(r.now), Wasted: r.wasted.spread(r.now), Calls: r.net.calls,
		ADDs: r.waits.adds, Waited: r.waits.waited, Failed: r.waits.failed, WaitedBy: r.waits.sum, Longest: r.waits.longest, Unplaced: r.waits.unplaced,
	}
	for _, n := range r.nodes {
		for _, p := range n.pods {
			if p.waits {
				d := r.now.Sub(p.since)
				out.Waiting++
				out.Waited++
				out.Failed += r.model.failures(d)
				out.WaitedBy += d
				out.Longest = max(out.Longest, d)
			}
		}
	}
	return out
}

// wakeups are the nodes to which something happens, the next one first.
type wakeups struct {
	order []int       // nodes, a heap
	at    []time.Time // by node
	pos   []int       // in order, by node; -1: not there
}

// set says when something happens to a node next; zero: nothing does.
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
