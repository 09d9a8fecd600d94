package sim

import (
	"time"

	"cnictl/daemon/keeper"
)

// process is one run of the daemon: the shell around a keeper.
type process struct {
	node   *node
	keeper *keeper.Keeper // nil until the start has created it
	born   time.Duration

	client *client
	fibers []*fiber
	tasks  int    // in progress
	scope  *scope // of tasks; ends with the drain's grace period

	inbox    []keeper.Message
	turnSoon bool
	wakes    int // number of the latest timer
	requests []*request
	serving  bool
	draining bool
	dead     bool
	toDie    bool
}

// Time limits of a drain, as in the shell.
const (
	opsGrace   = 5 * time.Second
	drainGrace = 8 * time.Second
)

// start starts a new daemon on the node.
func (n *node) start() {
	n.starts++
	p := &process{node: n, scope: &scope{}, born: n.w.clock}
	p.client = n.w.newClient(n.w.Scenario.Client, n.jitter)
	p.client.onThrottle = func() { p.post(keeper.Throttled{}) }
	n.process, n.last = p, p
	n.w.stats.Starts++
	n.w.tracef("%s: daemon %d starts", n.name, n.starts)
	p.spawn(func() {
		if err := p.boot(); err != nil {
			n.w.tracef("%s: daemon does not start: %v", n.name, err)
			n.w.after(0, func() { p.end("could not start") })
		}
	})
}

// spawn runs code that ends with the process.
func (p *process) spawn(body func()) {
	if p.dead {
		return
	}
	p.fibers = append(p.fibers, p.node.w.spawn(body))
	if len(p.fibers) > 256 {
		p.fibers = running(p.fibers)
	}
}

func (p *process) endFibers() {
	for _, f := range p.fibers {
		f.kill()
	}
	p.fibers = nil
}

// mayDie kills the process with the given probability, in an event right after the current
// one.
func (p *process) mayDie(part float64) {
	w := p.node.w
	if p.dead || p.toDie || w.settling || !w.dice.crashes.chance(part) {
		return
	}
	p.toDie = true
	w.after(0, p.crash)
}

// crash ends the process suddenly.
func (p *process) crash() {
	if p.dead {
		return
	}
	p.node.w.stats.Crashes++
	p.end("crashes")
	w, d := p.node.w, &p.node.disk
	if d.there && w.strike(w.Scenario.DiskLoss, FaultDamage) {
		p.node.loseFile()
	}
}

// end ends the process for any reason; another one starts later.
func (p *process) end(how string) {
	if p.dead {
		return
	}
	n := p.node
	n.w.tracef("%s: daemon %s", n.name, how)
	p.dead, p.serving = true, false
	n.process, n.crashed = nil, n.w.clock
	p.endFibers()
	for _, r := range p.requests {
		r.lost()
	}
	p.requests = nil
	pause := n.w.dice.crashes.span(200*time.Millisecond, 3*time.Second)
	if n.w.Scenario.Pace != nil {
		pause = crashPause(n.starts)
	}
	if !n.w.settling && n.w.dice.crashes.chance(0.3) {
		pause = n.w.dice.crashes.span(3*time.Second, n.w.Scenario.DownTime)
	}
	// If the daemon starts while EC2's lists and the metadata both lag, it can adopt an address
	// that its predecessor released as it died: in 4 of 4,000 worlds. Only a record of
	// releases would prevent that.
	n.w.after(pause+n.w.Scenario.ListLag, func() {
		if n.process == nil {
			n.start()
		}
	})
}

// drain simulates SIGTERM.
func (p *process) drain() {
	if p.dead || p.draining || !p.serving {
		return
	}
	w := p.node.w
	w.stats.Drains++
	w.tracef("%s: daemon gets SIGTERM", p.node.name)
	p.draining, p.serving = true, false
	p.post(keeper.Terminate{})
	w.after(opsGrace, p.scope.cancel)
	w.after(drainGrace, func() { p.end("is cut off while draining") })
}

// post sends a message to the keeper's goroutine.
func (p *process) post(m keeper.Message) {
	if p.dead {
		return
	}
	p.inbox = append(p.inbox, m)
	if !p.turnSoon && p.keeper != nil {
		p.turnSoon = true
		p.node.w.after(p.node.w.dice.faults.span(5*time.Microsecond, 300*time.Microsecond), p.turn)
	}
}

// turn runs one iteration of the keeper's loop.
func (p *process) turn() {
	if p.dead {
		return
	}
	w, now := p.node.w, p.node.w.now()
	p.turnSoon = false
	for _, m := range p.inbox {
		p.keeper.Handle(now, m)
	}
	clear(p.inbox)
	p.inbox = p.inbox[:0]
	p.keeper.Step(now)
	w.stats.Turns++
	p.node.inspect()
	if p.draining && p.tasks == 0 && len(p.requests) == 0 && p.keeper.Settled(now) {
		w.after(0, func() { p.end("has drained") })
		return
	}
	p.wakes++
	wake := p.wakes
	w.after(max(p.keeper.NextWake(now).Sub(now), time.Millisecond), func() {
		if p.wakes == wake {
			p.turn()
		}
	})
	p.mayDie(w.Scenario.CrashAtTurn)
}

// outside carries out the keeper's decisions.
type outside struct{ p *process }

func (o outside) Begin(t keeper.Task) {
	p := o.p
	p.tasks++
	p.spawn(func() {
		keeper.Run(within{p.scope, keeper.Urgent(t)}, &mistaken{&calls{p}, t}, t)
		p.tasks--
		p.post(keeper.Noted{What: "task ended"}) // a drain may be complete now
	})
}

func (o outside) Write(i keeper.Image) { o.p.write(i) }

func (o outside) Record(_ time.Time, e keeper.Event) {
	w, n := o.p.node.w, o.p.node
	switch e := e.(type) {
	case keeper.BookRefused:
		w.violate("book", "%s: the book refuses %T: %v", n.name, e.Event, e.Err)
	case keeper.MissedDEL:
		w.stats.MissedDELs++
	case keeper.Quarantined:
		w.stats.Quarantines++
		if w.Scenario.Mistake == ignoreQuarantine {
			w.after(0, o.p.dropQuarantined)
		}
	case keeper.Noted:
		if e.What == keeper.LeakDeleted {
			w.stats.Leaks++
		}
		return // reported where it occurred
	}
	if w.trace != nil {
		w.tracef("%s: %T %+v", n.name, e, e)
	}
}
