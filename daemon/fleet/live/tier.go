package live

import (
	"container/heap"
	"time"
)

// tier is the reason why a node is read. Nodes of one tier share one interval, so they come
// due in the order in which they were last read.
type tier int

const (
	tierForced  tier = iota // requested by hand
	tierOpen                // its screen is open
	tierVisible             // its row is on the screen
	tierFailing             // its last read failed
	tierRest
	tierBroken // it failed BrokenAfter times in a row
	tiers
)

// focused tiers hold the nodes on the screen.
func (t tier) focused() bool { return t <= tierVisible }

// ailing tiers may wait for their deadlines: they must not take all workers.
func (t tier) ailing() bool { return t == tierFailing || t == tierBroken }

// queue is a heap of nodes, the one read longest ago on top.
type queue []*node

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if !q[i].last.Equal(q[j].last) {
		return q[i].last.Before(q[j].last)
	}
	return q[i].seq < q[j].seq
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	n := x.(*node)
	n.index = len(*q)
	*q = append(*q, n)
}

func (q *queue) Pop() any {
	old := *q
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return n
}

// node is one node of the plan.
type node struct {
	name     string
	seq      uint64    // order of insertion
	last     time.Time // start of the last read; zero if none
	tier     tier
	index    int // in the queue of its tier
	busy     bool
	forced   bool
	upstream bool
	failures int // in a row
	shown    uint64
	kept     bool
	round    uint64 // the last round in which it was read
}

// lane is the queue that a node is in. Upstream nodes have separate lanes, as their
// intervals differ.
func (p *Plan) lane(n *node) *queue { return &p.lanes[laneOf(n.tier, n.upstream)] }

func laneOf(t tier, upstream bool) int {
	if upstream {
		return int(t)*2 + 1
	}
	return int(t) * 2
}

// place moves a node to the queue of its tier.
func (p *Plan) place(n *node) {
	if n.busy {
		return
	}
	t := p.tierOf(n)
	if n.index >= 0 {
		if t == n.tier {
			return
		}
		heap.Remove(p.lane(n), n.index)
	}
	n.tier = t
	heap.Push(p.lane(n), n)
}

// take takes a node out of its queue.
func (p *Plan) take(n *node) {
	if n.index >= 0 {
		heap.Remove(p.lane(n), n.index)
		n.index = -1
	}
}

func (p *Plan) tierOf(n *node) tier {
	switch {
	case n.forced:
		return tierForced
	case n.failures >= BrokenAfter:
		return tierBroken
	case n.failures > 0:
		return tierFailing
	case n.name == p.open:
		return tierOpen
	case p.isVisible(n.name):
		return tierVisible
	}
	return tierRest
}
