package ipamd

import (
	"context"
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

	book    *ipam.Book
	ledger  ledger
	commits chan<- image

	gen     uint64 // counts changes of the ledger
	durable uint64 // the newest change known to be on disk
	writing bool   // an image is with the checkpoint writer
	// commitAfter holds writes back for a moment after one failed.
	commitAfter time.Time
	unanswered  []answer

	policy      warmpool.Policy
	waiting     []*addRequest // ADDs that found the pool dry, oldest first
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

// run handles messages until stop is closed and everything asked before is answered.
func (o *owner) run(stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case m := <-o.inbox:
			o.handle(m)
		case <-timer.C:
		case <-stop:
			return
		}
		now := o.now()
		o.serveWaiting(now)
		o.flush()
		o.plan(now)
		timer.Reset(o.untilNextWake(o.now()))
	}
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
	if o.gen != o.durable && !o.writing {
		earlier(o.commitAfter)
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

// post delivers a message from another goroutine. It gives up with the context.
func (o *owner) post(ctx context.Context, m message) error {
	select {
	case o.inbox <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
