package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/schedule"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Options of a Live. Roster, Store and Now are required.
type Options struct {
	Roster Roster
	Store  *store.Store
	Now    func() time.Time

	Title       string        // of the fleet, for people
	UserAgent   string        // sent to the nodes
	Concurrency int           // nodes read at once; 0 = fleet.DefaultConcurrency
	NodeTimeout time.Duration // for everything asked of one node; 0 = fleet.DefaultNodeTimeout
	Interval    time.Duration // between two samples of what is looked at; 0 = schedule.DefaultInterval
	Background  time.Duration // between two samples of the rest; 0 = schedule.DefaultBackground

	// Pods lists the pods that Kubernetes has on a node; nil: it is not asked.
	Pods func(ctx context.Context, node string) ([]watch.Pod, error)
	// Requests counts the requests made to the API server so far; nil: none are.
	Requests func() uint64
	// Sampled gets each sample after the store, from one goroutine at a time, and must
	// not wait; nil: nobody wants them.
	Sampled func(introspect.NodeIPAM)
	// CPU is the processor time that this process has used, by which the sampling is
	// held to its share; nil: the system's word.
	CPU func() time.Duration
}

// Live samples a fleet.
type Live struct {
	opts    Options
	wake    chan struct{} // the plan may have something to do
	changed chan struct{}

	mu        sync.Mutex // guards all below
	plan      *schedule.Plan
	members   map[string]*member
	focus     watch.Focus
	paused    bool
	problem   string
	samples   uint64
	failed    uint64
	dropped   uint64
	followers int // requests for events under way
	latency   histogram
	meter     meter
}

// New builds a Live; it does nothing before Run.
func New(opts Options) (*Live, error) {
	switch {
	case opts.Roster == nil, opts.Store == nil, opts.Now == nil:
		return nil, errors.New("build live fleet: Roster, Store and Now are required")
	case opts.Concurrency < 0 || opts.Concurrency > fleet.MaxConcurrency:
		return nil, fmt.Errorf("build live fleet: concurrency %d is not in 1–%d", opts.Concurrency, fleet.MaxConcurrency)
	case opts.Concurrency == 0:
		opts.Concurrency = fleet.DefaultConcurrency
	}
	if opts.CPU == nil {
		opts.CPU = processorTime
	}
	return &Live{
		opts: opts, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), members: map[string]*member{},
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
	running.Go(func() { l.watch(ctx) })
	running.Go(func() { l.tell(ctx) })
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
	if one, ok := l.meter.read(now, l.opts.CPU(), l.samples); ok {
		l.plan.Cost(one)
	}
	for {
		name, ok := l.plan.Next(now)
		if !ok {
			break
		}
		m := l.members[name]
		reading, cancel := context.WithCancel(ctx)
		m.cancel = cancel
		q := fleet.Query{ENIs: l.wantsENIs(m, now)}
		running.Go(func() {
			defer cancel()
			l.sample(reading, m, q)
		})
	}
	at, ok := l.plan.Wake(now)
	if !ok {
		return time.Hour
	}
	return max(at.Sub(now), 0)
}

// How old the addresses of a node may be that nobody looks at. They are for the maps of
// subnets, and cost more to read than all the rest.
const (
	enisEvery      = time.Minute
	enisEveryLarge = 5 * time.Minute // in a fleet of more than largeFleet nodes
	largeFleet     = 500
)

// wantsENIs: the open node tells its addresses with each sample, the original cannot
// but do so, and of others they are asked for now and then.
func (l *Live) wantsENIs(m *member, now time.Time) bool {
	every := enisEvery
	if len(l.members) > largeFleet {
		every = enisEveryLarge
	}
	if m.target.Name == l.focus.Open || m.source == introspect.SourceV1 || m.enisAsked.IsZero() || now.Sub(m.enisAsked) >= every {
		m.enisAsked = now
		return true
	}
	return false
}

// sample reads a node and says what came of it.
func (l *Live) sample(ctx context.Context, m *member, q fleet.Query) {
	begin := l.opts.Now()
	out := m.reader.Read(ctx, q)
	now := l.opts.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.poke()
	if ctx.Err() != nil || l.members[m.target.Name] != m {
		l.dropped++
		m.reader.Close()
		return
	}
	keep, drop := l.plan.Done(m.target.Name, now, schedule.Result{
		OK: out.Summary != nil, Original: out.Source == introspect.SourceV1, Took: now.Sub(begin),
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
	out.Object = m.target.Object
	l.put(out)
	if l.opts.Sampled != nil {
		l.opts.Sampled(out)
	}
}

// put hands on what is known of a node; l.mu is held, so that no sample comes after the
// removal of its node.
func (l *Live) put(out introspect.NodeIPAM) { l.opts.Store.PutAt(out, l.opts.Now()) }

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

// telling is the least time between two tellings of a change: five a second.
const telling = 200 * time.Millisecond

// tell passes the store's changes on, in measure.
func (l *Live) tell(ctx context.Context) {
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
		if !pause(ctx, telling) {
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
