package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Options of a Live. Roster and Now are required.
type Options struct {
	Roster Roster
	Now    func() time.Time
	// Store takes the results; if nil, View stays empty and Changed never fires: for callers
	// that need only Sampled and Removed.
	Store *store.Store

	Title       string        // of the fleet, for people
	UserAgent   string        // sent to the nodes
	Concurrency int           // nodes read at once; 0 = fleet.DefaultConcurrency
	NodeTimeout time.Duration // for all requests to one node; 0 = fleet.DefaultNodeTimeout
	Interval    time.Duration // between two samples of a node on the screen; 0 = DefaultInterval
	// Background is the time between two samples of the other nodes; 0 =
	// DefaultBackground. Callers that want all nodes alike set it to Interval and never
	// call Focus: a sweep of a large fleet then takes as long as it may.
	Background time.Duration
	ENIs       bool // include the addresses in every sample of every node
	// Histories makes the store know the free counts of subnets that nodes kept before.
	Histories bool

	Kubernetes
	// Sampled gets each row after the store, never concurrently, and must neither block nor
	// call this Live: a node before its first sample (api-only without an error), each sample,
	// and each change that Kubernetes reports. Removed reports that a node is gone. Both may be
	// nil.
	Sampled func(document.NodeIPAM)
	Removed func(name string)
	// CPU returns the processor time that this process has used, which limits the sampling to
	// its share; if nil, the system is asked.
	CPU func() time.Duration

	unstored bool // there is no store to fill
}

// Kubernetes holds the requests to Kubernetes beyond the list of nodes; nil ones are not
// made.
type Kubernetes struct {
	// Pods lists the pods on a node.
	Pods func(ctx context.Context, node string) ([]watch.Pod, error)
	// AllPods lists the pods of all nodes, and those not yet bound to a node.
	AllPods func(ctx context.Context, find watch.PodQuery) (*watch.ClusterPods, error)
	// Events lists events on a node that concern the CNI, oldest first, at most the newest
	// watch.MaxKubeEvents.
	Events func(ctx context.Context, node string, since time.Time) ([]watch.KubeEvent, error)
	// ContainerLog reads the log of a daemon's container.
	ContainerLog func(ctx context.Context, daemon document.DaemonPod, q watch.ContainerLogQuery) (watch.ContainerLog, error)
	// Use returns what Kubernetes knows about the node's usage.
	Use func(ctx context.Context, node string) (watch.NodeUse, error)
	// Answers sends the API server a minimal request: nil if it answers, whatever the answer.
	Answers func(ctx context.Context) error
	// Requests returns the number of requests made to the API server so far.
	Requests func() uint64
}

// Live samples a fleet.
type Live struct {
	opts    Options
	wake    chan struct{} // signals that the plan may have work
	changed chan struct{}

	mu         sync.Mutex // guards all below
	plan       *Plan
	members    map[string]*member
	listed     bool // the roster has named all nodes
	focus      watch.Focus
	paused     bool
	problem    string
	problemAt  time.Time
	outage     outage
	heard      time.Time // the API server answered at this time or later
	pauses     PauseDetector
	stops      uint64 // how often the process was paused
	samples    uint64
	failed     uint64
	dropped    uint64
	followers  int // event requests in flight
	latency    histogram
	meter      meter
	lastEvents lastEvents

	sampled sync.Mutex // held while Sampled or Removed is called

	checking chan struct{} // holds a token during a check of the API server; guards all below
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
		opts: opts, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), members: map[string]*member{},
		checking: make(chan struct{}, 1),
		plan:     NewPlan(PlanConfig{Workers: opts.Concurrency, Interval: opts.Interval, Background: opts.Background, Listing: true}),
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
	if l.opts.Histories {
		l.guarded(&running, func() { l.histories(ctx) })
	}
	l.loop(ctx, &running)
	return nil
}

// loop starts what the plan asks for, when it is due.
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

// dispatch starts all reads that are due, and returns how long to wait until the next look.
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
	return min(wait, Beat)
}

// beat detects that the process was paused. Kept connections are no longer trusted then.
// The caller holds l.mu.
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

// How old the addresses of a node that is not on the screen may be while subnet maps are
// shown. They cost more to read than everything else.
const (
	enisEvery      = time.Minute
	enisEveryLarge = 5 * time.Minute // in a fleet of more than largeFleet nodes
	largeFleet     = 500
)

// wantsENIs reports whether to read the addresses too: with every sample of the open node and
// of upstream nodes, and of other nodes now and then while maps are shown.
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

// sample reads a node and stores the result.
func (l *Live) sample(ctx context.Context, m *member, q fleet.Query, stops uint64) {
	begin := l.opts.Now()
	m.unreachable.Store(nil)
	out := m.reader.Read(ctx, q)
	took := l.opts.Now().Sub(begin)
	var heard time.Time
	if l.answered(ctx, m, out) {
		heard = begin // the earliest possible time: the answer may have waited here
	}
	if l.learn(ctx, m, out, heard, took, stops) {
		l.putOrBreak(m, out)
	}
	l.poke()
}

// putOrBreak puts a sample. If it cannot be turned into a row, that is an error of its node.
func (l *Live) putOrBreak(m *member, out document.NodeIPAM) {
	_, err := fleet.Recover(func() (struct{}, error) { l.put(m, out); return struct{}{}, nil })
	if err != nil {
		l.put(m, fleet.Broken(m.target, err))
	}
}

// guarded runs f in a goroutine and reports a panic in it as trouble with the sampling: a
// panic must neither end the process, which would leave the terminal broken, nor get lost.
func (l *Live) guarded(running *sync.WaitGroup, f func()) {
	running.Go(func() {
		if _, err := fleet.Recover(func() (struct{}, error) { f(); return struct{}{}, nil }); err != nil {
			l.trouble(err)
			l.poke()
		}
	})
}

// learn updates the schedule and the statistics from a read. It returns false if the result
// is useless. heard is zero if the API server did not answer.
func (l *Live) learn(ctx context.Context, m *member, out document.NodeIPAM, heard time.Time, took time.Duration, stops uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	if ctx.Err() != nil || l.members[m.target.Name] != m {
		l.dropped++
		m.reader.Close()
		return false
	}
	// Whoever runs first after a pause detects it.
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
	keep, drop := l.plan.Done(m.target.Name, now, Result{
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

// put publishes a node's row, unless the node is gone. Building the row in the store takes
// longer than anything under l.mu, so samples are put without that lock.
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

// poke makes the loop look at the plan.
func (l *Live) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// closeNamed ends the idle connections of nodes. The caller holds l.mu.
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

const (
	// notifyEvery is the minimum time between two notifications of a change: five a second.
	notifyEvery = 200 * time.Millisecond
	// firstRows is the time after which the first nodes of a list are shown: they fill a screen by then.
	firstRows = 50 * time.Millisecond
)

// publish forwards the store's changes at a limited rate.
func (l *Live) publish(ctx context.Context) {
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-l.opts.Store.Changed():
		}
		if first && !pause(ctx, firstRows) {
			return
		}
		l.notify()
		if !pause(ctx, notifyEvery) {
			return
		}
	}
}

func (l *Live) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// pause waits for d; it returns false if ctx ends first.
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
