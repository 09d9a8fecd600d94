package live

import (
	"time"

	"cnictl/daemon/fleet/watch"
)

// Limits of the plan.
const (
	DefaultInterval   = 5 * time.Second
	DefaultBackground = 30 * time.Second
	MaxBackground     = 10 * time.Minute

	MinOpen     = 2 * time.Second // the node whose screen is open
	MinVisible  = 5 * time.Second
	MinFailing  = 10 * time.Second
	MinForced   = time.Second // between two reads requested by hand
	UpstreamMin = watch.UpstreamMin
	BrokenAfter = 3 // failures in a row
	BrokenEvery = time.Minute
	AwayFactor  = 6 // lengthens all intervals while the screen is in the background

	MaxKept  = 16  // tunnels kept open
	MaxShare = 0.3 // of one processor for reading

	// FirstWithin is the time within which every node is to be read for the first time. The
	// user waits for this: until then reading may exceed MaxShare and use all workers but one.
	FirstWithin = 20 * time.Second

	fairShare = 4 // consecutive picks of nodes on the screen before one of another node
)

// PlanConfig of a Plan. Workers is required.
type PlanConfig struct {
	Workers    int           // nodes read at once
	Interval   time.Duration // between two reads of a node on the screen; 0 = DefaultInterval
	Background time.Duration // of the other nodes; 0 = DefaultBackground
	Listing    bool          // until Listed is called only nodes on the screen are read: reading would delay the list
}

// Plan decides which node to read next. It is not safe for concurrent use.
type Plan struct {
	cfg          PlanConfig
	nodes        map[string]*node
	lanes        [tiers * 2]queue
	seq          uint64
	open         string
	shown        map[string]bool // visible rows
	focusChanges uint64          // changes of the focus
	away         bool
	paused       bool

	unread   int // nodes of which no read was ever started
	inFlight int
	others   int // of inFlight, those not on the screen
	ailing   int // of others, those that fail
	streak   int // consecutive picks of nodes on the screen
	kept     []*node

	cost    time.Duration // processor time of one read, smoothed
	took    time.Duration // time of one read of a node off the screen, smoothed
	tookTop time.Duration // time of one read of a node on the screen, smoothed
	paced   time.Time     // earliest next read of a node off the screen

	rounds
}

// NewPlan makes a plan without nodes.
func NewPlan(cfg PlanConfig) *Plan {
	cfg.Workers = max(cfg.Workers, 1)
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Background <= 0 {
		cfg.Background = DefaultBackground
	}
	return &Plan{cfg: cfg, nodes: map[string]*node{}, shown: map[string]bool{}, rounds: rounds{round: 1}}
}

// Put adds a node; an existing one is left alone.
func (p *Plan) Put(name string) {
	if p.nodes[name] != nil {
		return
	}
	p.seq++
	n := &node{name: name, seq: p.seq, index: -1}
	p.nodes[name] = n
	p.left++
	p.unread++
	p.mark(n)
	p.place(n)
}

// Remove removes a node. If a read of it is in flight, Done ignores its result.
func (p *Plan) Remove(name string) {
	n := p.nodes[name]
	if n == nil {
		return
	}
	p.take(n)
	p.drop(n)
	if n.busy {
		p.free(n)
	}
	if n.round != p.round {
		p.left--
	}
	if n.last.IsZero() {
		p.unread--
	}
	delete(p.nodes, name)
}

// Listed reports that all nodes there are have been put.
func (p *Plan) Listed() { p.cfg.Listing = false }

// Len counts the nodes.
func (p *Plan) Len() int { return len(p.nodes) }

// InFlight counts the reads that were started and not yet reported to Done.
func (p *Plan) InFlight() int { return p.inFlight }

// Focus sets what is on the screen. It returns the nodes whose tunnels are to be closed.
func (p *Plan) Focus(open string, visible []string, away bool) (drop []string) {
	before, was := p.shown, p.open
	p.open, p.away = open, away
	p.shown = make(map[string]bool, len(visible))
	p.focusChanges++
	for _, name := range visible {
		p.shown[name] = true
	}
	touch := func(name string) {
		if n := p.nodes[name]; n != nil {
			if n.shown == 0 || !p.onScreen(n) {
				p.mark(n)
			}
			p.place(n)
		}
	}
	for name := range before {
		touch(name)
	}
	touch(was)
	for name := range p.shown {
		touch(name)
	}
	touch(open)
	return p.dropWhere(func(n *node) bool { return away || !p.onScreen(n) })
}

// mark records since which look a node has been on the screen.
func (p *Plan) mark(n *node) {
	if n.shown = 0; p.onScreen(n) {
		n.shown = p.focusChanges
	}
}

func (p *Plan) isVisible(name string) bool { return p.shown[name] }

func (p *Plan) onScreen(n *node) bool { return n.name == p.open || p.isVisible(n.name) }

// Pace sets the interval for nodes on the screen, unless it is 0, and whether to read at all.
// It returns the nodes whose tunnels are to be closed.
func (p *Plan) Pace(interval time.Duration, paused bool) (drop []string) {
	if interval > 0 {
		p.cfg.Interval = max(interval, MinOpen)
	}
	if p.paused = paused; !paused {
		return nil
	}
	return p.dropWhere(func(*node) bool { return true })
}

// Refresh makes the nodes on the screen due now, even while paused; all nodes if none is.
func (p *Plan) Refresh() {
	any := false
	for _, n := range p.nodes {
		if p.onScreen(n) {
			any = true
			break
		}
	}
	for _, n := range p.nodes {
		if !any || p.onScreen(n) {
			p.force(n)
		}
	}
}

// Force makes one node due now.
func (p *Plan) Force(name string) {
	if n := p.nodes[name]; n != nil {
		p.force(n)
	}
}

func (p *Plan) force(n *node) {
	n.forced = true
	p.place(n)
}

// Touch records a request to a node outside the plan.
func (p *Plan) Touch(name string, now time.Time) {
	n := p.nodes[name]
	if n == nil || n.busy {
		return
	}
	p.take(n)
	if n.last.IsZero() {
		p.unread--
	}
	n.last = now
	p.place(n)
}

// Allows reports whether a node may be sent a request outside the plan.
func (p *Plan) Allows(name string, now time.Time) bool {
	n := p.nodes[name]
	return n == nil || !n.upstream || n.last.IsZero() || now.Sub(n.last) >= UpstreamMin
}

// Next picks the node to read now; ok is false when none is due or all workers are busy.
func (p *Plan) Next(now time.Time) (name string, ok bool) {
	n := p.pick(now)
	if n == nil {
		return "", false
	}
	p.take(n)
	if p.inFlight == 0 {
		p.busyFrom(now)
	}
	p.inFlight++
	if n.tier.focused() {
		p.streak++
	} else {
		p.streak = 0
		p.others++
		if n.tier.ailing() {
			p.ailing++
		}
		p.pace(now)
	}
	if n.last.IsZero() {
		p.unread--
	}
	n.busy, n.forced, n.last = true, false, now
	p.began(n, now)
	return n.name, true
}

func (p *Plan) pick(now time.Time) *node {
	if p.inFlight >= p.cfg.Workers {
		return nil
	}
	top := p.dueFocused(now)
	if top != nil && p.streak < fairShare {
		return top
	}
	if other := p.dueOther(now); other != nil {
		return other
	}
	return top
}

// dueFocused returns the next node to read among those on the screen: alternately the most
// important one and the one that has been due longest.
func (p *Plan) dueFocused(now time.Time) *node {
	var first candidate
	for t := tierForced; t <= tierVisible; t++ {
		p.dueOf(t, now, &first)
		if first.node != nil && p.streak%2 == 0 {
			break
		}
	}
	return first.node
}

// candidate is a node and the time since which it has been due.
type candidate struct {
	node  *node
	since time.Time
}

// dueOf replaces first with the node of a tier that has been due longest, if it has been due
// longer than first.
func (p *Plan) dueOf(t tier, now time.Time, first *candidate) {
	for _, upstream := range [...]bool{false, true} {
		if n, at := p.first(t, upstream); n != nil && !at.After(now) && (first.node == nil || at.Before(first.since)) {
			*first = candidate{n, at}
		}
	}
}

// first returns the head of a lane and when it is due.
func (p *Plan) first(t tier, upstream bool) (*node, time.Time) {
	q := p.lanes[laneOf(t, upstream)]
	if len(q) == 0 || p.paused && t != tierForced {
		return nil, time.Time{}
	}
	if q[0].last.IsZero() {
		return q[0], time.Time{}
	}
	return q[0], q[0].last.Add(p.every(t, upstream))
}

// dueOther returns the node off the screen that has been due longest.
func (p *Plan) dueOther(now time.Time) *node {
	if p.cfg.Listing || now.Before(p.paced) || !p.room() {
		return nil
	}
	var first candidate
	for t := tierFailing; t < tiers; t++ {
		if !t.ailing() || p.roomForAiling() {
			p.dueOf(t, now, &first)
		}
	}
	return first.node
}

// room reports whether another node off the screen may be read: some workers are reserved for
// nodes on the screen.
func (p *Plan) room() bool { return p.others < p.slots() }

func (p *Plan) slots() int {
	if !p.Swept() {
		return max(p.cfg.Workers-1, 1)
	}
	return p.steadySlots()
}

func (p *Plan) steadySlots() int {
	if p.cfg.Workers == 1 {
		return 1
	}
	return p.cfg.Workers - (p.cfg.Workers+7)/8
}

func (p *Plan) roomForAiling() bool { return p.ailing < max(1, p.slots()/2) }

// Wake returns when Next may return a node if nothing is reported before; ok is false if only
// a report can change that.
func (p *Plan) Wake(now time.Time) (at time.Time, ok bool) {
	if p.inFlight >= p.cfg.Workers {
		return time.Time{}, false
	}
	for t := range tiers {
		if !t.focused() && (p.cfg.Listing || !p.room() || t.ailing() && !p.roomForAiling()) {
			continue
		}
		for _, upstream := range [...]bool{false, true} {
			n, due := p.first(t, upstream)
			if n == nil {
				continue
			}
			if !t.focused() && due.Before(p.paced) {
				due = p.paced
			}
			if !ok || due.Before(at) {
				at, ok = due, true
			}
		}
	}
	if ok && at.Before(now) {
		at = now
	}
	return at, ok
}

// Result is the outcome of a read.
type Result struct {
	OK       bool
	Upstream bool          // it is an upstream node; unknown if the read failed
	Took     time.Duration // wall-clock time
}

// Done reports the end of a read. keep says whether the node's tunnel stays open; drop lists
// the nodes whose tunnels are to be closed in exchange.
func (p *Plan) Done(name string, now time.Time, r Result) (keep bool, drop []string) {
	n := p.nodes[name]
	if n == nil || !n.busy {
		return false, nil
	}
	switch {
	case !r.OK: // it may have waited for a deadline, which says nothing about other nodes
	case n.tier.focused():
		p.tookTop = smooth(p.tookTop, r.Took)
	default:
		p.took = smooth(p.took, r.Took)
	}
	p.free(n)
	if p.inFlight == 0 {
		p.idleFrom(now)
	}
	p.ended(now, len(p.nodes))
	if r.OK {
		n.failures, n.upstream = 0, r.Upstream
	} else {
		n.failures++
	}
	p.place(n)
	if !r.OK {
		p.drop(n)
		return false, nil
	}
	return p.keep(n)
}

// Forget discards a read during which the process was paused or the API server was
// unreachable: the node is read again as soon as possible.
func (p *Plan) Forget(name string, now time.Time) {
	n := p.nodes[name]
	if n == nil || !n.busy {
		return
	}
	p.free(n)
	if p.inFlight == 0 {
		p.idleFrom(now)
	}
	n.forced = true
	p.drop(n)
	p.place(n)
}

// free releases the worker of a node.
func (p *Plan) free(n *node) {
	n.busy = false
	p.inFlight--
	if !n.tier.focused() {
		p.others--
		if n.tier.ailing() {
			p.ailing--
		}
	}
}

// smooth moves an average towards a new value.
func smooth(average, value time.Duration) time.Duration {
	if average == 0 {
		return value
	}
	return average + (value-average)/8
}
