package ipamd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// A message is something that happened outside; the owner applies it to its state.
type message interface{ handle(o *owner, now time.Time) }

// idleWake bounds how long the owner sleeps when nothing happens: the fallback
// tick of the pool (spec/ipamd.md §4.1).
const idleWake = 5 * time.Second

// drainLimit bounds the messages taken before answers are flushed.
const drainLimit = 256

// owner is the single writer of the node's state. Only its goroutine touches
// these fields.
type owner struct {
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics.Metrics
	node    node
	exec    *executor
	inbox   chan message
	ended   chan struct{} // closed when the owner takes no more messages

	book    *ipam.Book
	ledger  ledger
	commits chan<- image

	gen     uint64 // counts changes of the ledger
	durable uint64 // the newest change known to be on disk
	// encoded is the newest image. The writer reads it while writing is set; a new
	// one per ADD would make the collector the daemon's main work.
	encoded []byte
	writing bool      // an image is with the checkpoint writer
	wrote   time.Time // since when
	// commitAfter holds writes back for a moment after one failed.
	commitAfter time.Time
	unanswered  []answer

	policy      warmpool.Policy
	restored    map[ipam.Sandbox]bool // read from the checkpoint at start, and named their pod
	waiting     []*addRequest         // ADDs that found the pool dry, oldest first
	ops         map[opID]*operation
	lastOp      opID
	backoff     backoffs
	subnets     subnetCache
	attachments map[ipam.ENIID]string // attachment ids, where known
	wakeAt      time.Time             // from the last plan's Wait
	planned     string                // digest of the last plan, to log on change

	lastScaleDown time.Time
	terminating   bool
	unschedulable bool
	nodeKnown     bool // the Node object has been read
	maxPodsSource string

	history history
	calls   *callCounts
}

// run handles messages until stop is closed and the checkpoint is as current as the
// disk allows.
func (o *owner) run(stop <-chan struct{}) {
	defer close(o.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for stopping := false; ; {
		select {
		case m := <-o.inbox:
			o.handle(m)
		case <-timer.C:
		case <-stop:
			stopping, stop = true, nil
		}
		o.step(o.now())
		if stopping && (o.gen == o.durable || o.commitFailing(o.now())) {
			return
		}
		timer.Reset(o.untilNextWake(o.now()))
	}
}

// step draws the consequences of what was handled: who can be answered, what is to
// be written, what the pool should do.
func (o *owner) step(now time.Time) {
	o.serveWaiting(now)
	o.failStuck(now)
	o.flush()
	o.plan(now)
	o.metrics.Waiting(len(o.waiting))
}

// handle applies one message and those already queued behind it, so that
// parallel requests share one checkpoint write and one plan.
func (o *owner) handle(m message) {
	m.handle(o, o.now())
	for range drainLimit {
		select {
		case next := <-o.inbox:
			next.handle(o, o.now())
		default:
			return
		}
	}
}

func (o *owner) untilNextWake(now time.Time) time.Duration {
	wake := now.Add(idleWake)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(wake) {
			wake = t
		}
	}
	earlier(o.wakeAt)
	switch {
	case o.gen != o.durable && !o.writing:
		earlier(o.commitAfter)
	case o.writing && !o.stuck(now):
		earlier(o.wrote.Add(commitLimit))
	}
	for _, w := range o.waiting {
		earlier(w.deadline)
	}
	if len(o.waiting) > 0 {
		earlier(o.nextCooled(now))
	}
	// A due time in the past means "at once", but never a busy loop.
	return max(wake.Sub(now), time.Millisecond)
}

// errEnded says that nobody is left to answer.
var errEnded = errors.New("ipamd has ended")

// post delivers a message from another goroutine. It gives up with the context, and
// when the owner has ended.
func (o *owner) post(ctx context.Context, m message) error {
	select {
	case o.inbox <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-o.ended:
		return errEnded
	}
}

// deliver posts what happened for those who have no more to lose: if the owner has
// ended, nobody is left whom it matters to.
func (o *owner) deliver(m message) {
	select {
	case o.inbox <- m:
	case <-o.ended:
	}
}

// answered waits for the owner's reply to a message that was posted. It is false
// when the owner ended without one.
func answered[T any](o *owner, reply <-chan T) (T, bool) {
	select {
	case r := <-reply:
		return r, true
	case <-o.ended:
	}
	select {
	case r := <-reply: // the last thing it did
		return r, true
	default:
		var none T
		return none, false
	}
}
