package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/schedule"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Options of a Live. Roster and Now are required.
type Options struct {
	Roster Roster
	Now    func() time.Time
	// Store takes what is learned; nil: View stays empty and Changed never fires, for those
	// for which Sampled and Removed are enough.
	Store *store.Store

	Title       string        // of the fleet, for people
	UserAgent   string        // sent to the nodes
	Concurrency int           // nodes read at once; 0 = fleet.DefaultConcurrency
	NodeTimeout time.Duration // for everything asked of one node; 0 = fleet.DefaultNodeTimeout
	Interval    time.Duration // between two samples of what is looked at; 0 = schedule.DefaultInterval
	// Background is the time between two samples of the rest; 0 = schedule.DefaultBackground.
	// Who wants all nodes alike sets it to Interval and leaves Focus alone: reading all of a
	// large fleet then takes as long as it may.
	Background time.Duration
	ENIs       bool // every sample of every node is to have its addresses

	Kubernetes
	// Sampled gets each row after the store, from one goroutine at a time, and must neither
	// wait nor call this Live: a node before its first sample (api-only without an error), each sample, and
	// what Kubernetes reports. Removed reports that a node went. nil: they are not wanted.
	Sampled func(document.NodeIPAM)
	Removed func(name string)
	// CPU is the processor time that this process has used, by which the sampling is
	// held to its share; nil: the system's word.
	CPU func() time.Duration

	unstored bool // Store is not filled
}

// Kubernetes is what is asked of Kubernetes beside the list of nodes. nil: it is not
// asked.
type Kubernetes struct {
	// Pods lists the pods on a node.
	Pods func(ctx context.Context, node string) ([]watch.Pod, error)
	// AllPods lists those of all nodes, and those that no node has yet.
	AllPods func(ctx context.Context, find watch.PodQuery) (*watch.ClusterPods, error)
	// Events lists what concerns the CNI on a node, oldest first, the newest
	// watch.MaxKubeEvents at most.
	Events func(ctx context.Context, node string, since time.Time) ([]watch.KubeEvent, error)
	// ContainerLog reads what a daemon's container wrote.
	ContainerLog func(ctx context.Context, daemon document.DaemonPod, q watch.ContainerLogQuery) (watch.ContainerLog, error)
	// Use returns what Kubernetes knows of the use of a node.
	Use func(ctx context.Context, node string) (watch.NodeUse, error)
	// Answers asks the API server for next to nothing: nil when it answers, whatever it says.
	Answers func(ctx context.Context) error
	// Requests counts the requests made to the API server so far.
	Requests func() uint64
}

// Live samples a fleet.
type Live struct {
	opts    Options
	wake    chan struct{} // the plan may have something to do
	changed chan struct{}

	mu         sync.Mutex // guards all below
	plan       *schedule.Plan
	members    map[string]*member
	listed     bool // the roster named a node
	focus      watch.Focus
	paused     bool
	problem    string
	problemAt  time.Time
	outage     outage
	heard      time.Time // the API server answered then or later
	pauses     schedule.PauseDetector
	stops      uint64 // how often nothing ran
	samples    uint64
	failed     uint64
	dropped    uint64
	followers  int // requests for events under way
	latency    histogram
	meter      meter
	lastEvents lastEvents

	sampled sync.Mutex // held while Sampled or Removed is called

	checking chan struct{} // holds a token while the API server is asked whether it answers; guards all below
	checked  time.Time     // when it was last asked
	silence  error         // why it did not answer
}

// New builds a Live; it does nothing before Run.
func New(opts Options) (*Live, error) {
	switch {
	case opts.Roster == nil, opts.Now == nil:
		return nil, errors.New("build live fleet: Roster and Now are required")
	case opts.Concurrency < 0 || opts.Concurrency > fleet.MaxConcurrency:
		return nil, fmt.Errorf("build live fleet: concurrency %d is not in 1–%d", opts.Concurrency, fleet.MaxConcurrency)
	case opts.Concurrency == 0:
		opts.Concurrency = fleet.DefaultConcurrency
	}
	if opts.CPU == nil {
		opts.CPU = processorTime
	}
	if opts.Store == nil {
		opts.Store, opts.unstored = store.New(), true
	}
	return &Live{
		opts: opts, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), members: map[string]*member{}, checking: make(chan struct{}, 1),
		plan: schedule.New(schedule.Config{Workers: opts.Concurrency, Interval: opts.Interval, Background: opts.Background}),
	}, nil
}

// Run samples until ctx ends.
func (l *Live) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer l.closeAll()
	defer running.Wait()
	defer cancel()
	l.guarded(&running, func() { l.watch(ctx) })
	l.guarded(&running, func() { l.publish(ctx) })
	l.loop(ctx, &running)
	return nil
}

// loop begins what the plan says, when it says.
func (l *Live) loop(ctx context.Context, running *sync.WaitGroup) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var f follower
	for ctx.Err() == nil {
		wait := l.dispatch(ctx, running)
		l.follow(ctx, running, &f)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C:
		}
	}
}

// dispatch begins all readings that are due, and returns when to look again.
func (l *Live) dispatch(ctx context.Context, running *sync.WaitGroup) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	l.beat(now)
	if one, ok := l.meter.read(now, l.opts.CPU(), l.samples); ok {
		l.plan.Cost(one)
	}
	for l.outage.may(now, l.plan.InFlight()) {
		name, ok := l.plan.Next(now)
		if !ok {
			break
		}
		m := l.members[name]
		reading, cancel := context.WithCancel(ctx)
		m.cancel = cancel
		q, stops := fleet.Query{ENIs: l.wantsENIs(m, now)}, l.stops
		l.guarded(running, func() {
			defer cancel()
			l.sample(reading, m, q, stops)
		})
	}
	wait := time.Hour
	if at, ok := l.plan.Wake(now); ok {
		wait = max(at.Sub(now), 0)
	}
	wait = l.outage.until(now, wait, l.plan.InFlight())
	if l.plan.InFlight() == 0 {
		l.pauses.Rest()
		return wait
	}
	return min(wait, schedule.Beat)
}

// beat notices that nothing ran for a while. Connections that were kept are not to be
// trusted then. l.mu is held.
func (l *Live) beat(now time.Time) {
	if l.pauses.At(now) == 0 {
		return
	}
	l.stops++
	for _, m := range l.members {
		if m.reader != nil {
			m.reader.Close()
		}
	}
}

// How old the addresses of a node that is not looked at may be while maps of subnets are
// shown. They cost more to read than all the rest.
const (
	enisEvery      = time.Minute
	enisEveryLarge = 5 * time.Minute // in a fleet of more than largeFleet nodes
	largeFleet     = 500
)

// wantsENIs: the open node reports its addresses with each sample, upstream always does,
// and other nodes are asked for them now and then while there are maps.
func (l *Live) wantsENIs(m *member, now time.Time) bool {
	if l.opts.ENIs || m.target.Name == l.focus.Open || m.source == document.SourceV1 {
		m.enisAsked = now
		return true
	}
	every := enisEvery
	if len(l.members) > largeFleet {
		every = enisEveryLarge
	}
	if !l.focus.Maps || !m.enisAsked.IsZero() && now.Sub(m.enisAsked) < every {
		return false
	}
	m.enisAsked = now
	return true
}

// sample reads a node and says what came of it.
func (l *Live) sample(ctx context.Context, m *member, q fleet.Query, stops uint64) {
	begin := l.opts.Now()
	m.unreachable.Store(nil)
	out := m.reader.Read(ctx, q)
	took := l.opts.Now().Sub(begin)
	var heard time.Time
	if l.answered(ctx, m, out) {
		heard = begin // all that is certain: the answer may have waited here
	}
	if l.learn(ctx, m, out, heard, took, stops) {
		l.hand(m, out)
	}
	l.poke()
}

// hand puts a sample. One that no row can be made of is an error of its node.
func (l *Live) hand(m *member, out document.NodeIPAM) {
	_, err := fleet.Recover(func() (struct{}, error) { l.put(m, out); return struct{}{}, nil })
	if err != nil {
		l.put(m, fleet.Broken(m.target, err))
	}
}

// guarded runs f in a goroutine. A panic in it is reported as trouble with the reading:
// it must neither end the process, which would leave the terminal as it is, nor be lost.
func (l *Live) guarded(running *sync.WaitGroup, f func()) {
	running.Go(func() {
		if _, err := fleet.Recover(func() (struct{}, error) { f(); return struct{}{}, nil }); err != nil {
			l.trouble(err)
			l.poke()
		}
	})
}

// learn notes a reading for the plan and the figures; false: it is of no use. heard is zero if
// the API server did not answer for it.
func (l *Live) learn(ctx context.Context, m *member, out document.NodeIPAM, heard time.Time, took time.Duration, stops uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	if ctx.Err() != nil || l.members[m.target.Name] != m {
		l.dropped++
		m.reader.Close()
		return false
	}
	// Whoever runs first after a standstill notices it.
	if l.beat(now); l.stops != stops && out.Error != nil {
		l.dropped++
		m.reader.Close()
		l.plan.Forget(m.target.Name, now)
		return false
	}
	if why := m.unreachable.Load(); why != nil && out.Error != nil {
		l.outage.failed(now, *why)
		l.dropped++
		m.reader.Close()
		l.plan.Forget(m.target.Name, now)
		return false
	}
	if !heard.IsZero() {
		l.answers(heard)
	}
	keep, drop := l.plan.Done(m.target.Name, now, schedule.Result{
		OK: out.Summary != nil, Upstream: out.Source == document.SourceV1, Took: took,
	})
	if !keep {
		m.reader.Close()
	}
	l.closeNamed(drop)
	l.samples++
	if out.Error != nil {
		l.failed++
	}
	if out.LatencySeconds != nil {
		l.latency.add(time.Duration(*out.LatencySeconds * float64(time.Second)))
	}
	m.learn(out, m.target.Name == l.focus.Open, now)
	return true
}

// put hands on what is known of a node, unless it is gone. The store makes a row of it,
// which takes longer than all that l.mu guards: that is not held for it.
func (l *Live) put(m *member, out document.NodeIPAM) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return
	}
	out.Object = m.object
	m.known = m.known || out.Summary != nil
	if !m.known {
		m.state, m.why = out.State, out.Error
	}
	if !l.opts.unstored {
		l.opts.Store.PutAt(out, l.opts.Now())
	}
	if l.opts.Sampled != nil {
		l.sampled.Lock()
		defer l.sampled.Unlock()
		l.opts.Sampled(out)
	}
}

// poke has the loop look at the plan.
func (l *Live) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// closeNamed ends the idle connections of nodes; l.mu is held.
func (l *Live) closeNamed(names []string) {
	for _, name := range names {
		if m := l.members[name]; m != nil && m.reader != nil {
			m.reader.Close()
		}
	}
}

func (l *Live) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if m.reader != nil {
			m.reader.Close()
		}
	}
}

// notifyEvery is the minimum time between two notifications of a change: five a second.
const notifyEvery = 200 * time.Millisecond

// publish passes the store's changes on, at a bounded rate.
func (l *Live) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.opts.Store.Changed():
		}
		select {
		case l.changed <- struct{}{}:
		default:
		}
		if !pause(ctx, notifyEvery) {
			return
		}
	}
}

// pause waits; false: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
