package fleetsim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"cnictl/capacity/whatif"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
	"cnictl/testenv/aws/ec2model"
)

// Limits of a node's history.
const (
	maxEvents   = 64
	maxFailures = 20
)

// world is a node's pool and its pods at one moment. It only moves forward, from event to
// event, each with its own random numbers, so it does not matter when it is read.
type world struct {
	whatif.Pool
	node *node
	rnd  *rand.Rand

	pods    []*workload // by age
	target  int         // number of pods that it moves towards
	made    int         // pods created so far
	nextPod time.Time

	enis   int // created so far
	space  *ec2model.Space
	space6 *ec2model.Space6

	seq        uint64 // of the newest event
	events     []introspect.Event
	failures   []introspect.Failure
	errors     []introspect.LastError
	calls      map[string]*introspect.EC2Calls
	adds       introspect.RequestCounts
	dels       introspect.RequestCounts
	branchPods branchPods
}

// withWorld brings the node's pool up to date and calls see with it, under the lock.
func (n *node) withWorld(see func(*world)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.world == nil {
		n.world = newWorld(n)
	}
	n.world.advance(n.sim.now())
	see(n.world)
}

// newWorld returns the node at the fleet's start: settled, with its pods.
func newWorld(n *node) *world {
	seed := n.sim.hash(n.index, "world")
	cards := 1
	if n.profile.policy.MultiNIC {
		cards = len(n.profile.limits.Cards)
	}
	w := &world{
		Pool: whatif.Pool{
			Book: ipam.New(ipam.Options{Cooldown: cooldown}), Plan: warmpool.Plan, Policy: n.profile.policy, Now: n.started, Cordoned: n.cordoned,
			Limits:     warmpool.Limits{IPv4PerENI: n.profile.limits.IPv4PerENI, ENIsByCard: n.profile.limits.ENIsByCard()[:cards]},
			ENIBackoff: map[ipam.ENIID]time.Time{},
		},
		node: n, space: ec2model.NewSpace(n.block), space6: ec2model.NewSpace6(n.block6()), rnd: rand.New(rand.NewPCG(seed, 2)), calls: map[string]*introspect.EC2Calls{},
		adds: introspect.RequestCounts{Failed: new(0), Causes: map[string]int{}}, dels: introspect.RequestCounts{Failed: new(0), Causes: map[string]int{}},
	}
	w.EC2 = fakeEC2{w}
	w.Attach(warmpool.AttachENI{Card: 0, Device: 0})
	if n.profile.podENI {
		w.Attach(warmpool.AttachENI{Card: 0, Device: 1})
		w.branchPods.begin(w, w.rnd.IntN(max(1, n.profile.limits.BranchENIs/2)))
	}
	w.target = 2 + w.rnd.IntN(max(1, w.room()*3/4))
	if n.refusedByEC2() {
		w.target = 2 // leaves room for the pool to grow
	}
	for range w.target {
		w.newPod(n.started.Add(time.Duration(w.rnd.Int64N(int64(n.sim.epoch.Sub(n.started))))))
	}
	slices.SortFunc(w.pods, func(a, b *workload) int { return cmp.Or(a.created.Compare(b.created), a.number-b.number) })
	w.settle()
	for _, p := range w.pods {
		w.Now = p.created
		if !w.assign(p) {
			p.waits = n.sim.epoch
		}
	}
	w.Now = n.sim.epoch
	w.settle()
	if n.refusedByEC2() {
		w.Now = n.sim.epoch.Add(-refusedFor)
		w.useUp()
	}
	w.events, w.seq = nil, 0
	w.note(introspect.Event{Kind: introspect.EventStarted, At: n.started})
	w.nextPod = w.later()
	w.plan()
	return w
}

// refusedFor is how long EC2 has refused a node when the fleet starts: some ADDs have failed.
const refusedFor = time.Minute

// useUp assigns all addresses of the pool and adds one waiting pod.
func (w *world) useUp() {
	for {
		p := w.newPod(w.Now)
		if w.target = len(w.pods); !w.assign(p) {
			p.waits = w.Now
			return
		}
	}
}

// room is the maximum number of pods that need an address.
func (w *world) room() int {
	if w.node.sim.opts.Sound {
		return max(2, w.node.profile.maxPods*2/3) // some addresses are in cooldown
	}
	return max(2, w.node.profile.maxPods-3)
}

// later draws the time when the next pod is created or deleted.
func (w *world) later() time.Time {
	churn := w.node.sim.opts.Churn
	if churn < 0 {
		return w.Now.Add(100 * 365 * 24 * time.Hour)
	}
	return w.Now.Add(time.Duration(float64(churn) * (0.05 + w.rnd.ExpFloat64())))
}

// advance plays all events up to a time.
func (w *world) advance(to time.Time) {
	for {
		at, what := w.nextPod, w.churn
		for i := range w.Ops {
			if w.Ops[i].End.Before(at) {
				at, what = w.Ops[i].End, func() { w.finish(i) }
			}
		}
		if !w.Replan.IsZero() && w.Replan.Before(at) {
			at, what = w.Replan, func() { w.Replan = time.Time{} }
		}
		for _, p := range w.pods {
			if end := p.waits.Add(addPatience); !p.waits.IsZero() && end.Before(at) {
				at, what = end, func() { w.giveUp(p) }
			}
		}
		if at.After(to) {
			break
		}
		w.Now = maxTime(w.Now, at)
		what()
		w.serveWaiting()
		w.plan()
	}
	w.Now = maxTime(w.Now, to)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// churn creates or deletes a pod.
func (w *world) churn() {
	if w.rnd.IntN(12) == 0 {
		w.target = 1 + w.rnd.IntN(w.room())
	}
	if w.node.profile.podENI {
		w.branchPods.serve(w)
		if w.rnd.IntN(4) == 0 {
			w.branchPods.turn(w, w.rnd.IntN(3)-1)
		}
	}
	more := len(w.pods) < w.target || (len(w.pods) == w.target && w.rnd.IntN(2) == 0)
	if w.node.cordoned {
		more = false
	}
	switch {
	case more && len(w.pods) < w.room():
		p := w.newPod(w.Now)
		if !w.assign(p) {
			p.waits = w.Now
			w.note(introspect.Event{Kind: introspect.EventPoolMissed, Pod: p.ref()})
		}
		w.published(p, nil, added)
	case len(w.pods) > 0 && !w.node.cordoned:
		w.drop(w.rnd.IntN(len(w.pods)))
	}
	w.nextPod = w.later()
}

// fail records an error, or counts it if it repeats.
func (w *world) fail(operation string, code cause.Code, message string) {
	for i := range w.errors {
		if e := &w.errors[i]; e.Operation == operation && e.Cause == string(code) {
			e.At, e.Count = w.Now, e.Count+1
			return
		}
	}
	w.errors = append(w.errors, introspect.LastError{At: w.Now, Operation: operation, Cause: string(code), Message: message, Count: 1})
	if len(w.errors) > introspect.MaxLastErrors {
		w.errors = slices.Delete(w.errors, 0, 1)
	}
}

func (w *world) note(e introspect.Event) {
	w.seq++
	e.Seq = w.seq
	if e.At.IsZero() {
		e.At = w.Now
	}
	if len(w.events) >= maxEvents {
		w.events = slices.Delete(w.events, 0, maxEvents/4)
	}
	w.events = append(w.events, e)
}
