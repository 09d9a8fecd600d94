package ipamd

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
)

// owner runs the keeper. Only its goroutine touches the keeper.
type owner struct {
	keeper  *keeper.Keeper
	now     func() time.Time
	metrics *metrics.Metrics
	stepped func(*keeper.Keeper, time.Time) // called after each step; may be nil
	inbox   chan item
	ended   chan struct{} // closed when the owner takes no more items
	waiting atomic.Bool   // ADDs wait for the pool, as of the last step
}

// podsWait reports whether ADDs wait for the pool. Any goroutine may ask.
func (o *owner) podsWait() bool { return o.waiting.Load() }

// item is an item in the owner's inbox: a message for its keeper, or a question.
type item struct {
	message keeper.Message
	ask     func(now time.Time)
}

func newOwner(met *metrics.Metrics) *owner {
	return &owner{now: time.Now, metrics: met, inbox: make(chan item, inboxSize), ended: make(chan struct{})}
}

// inboxSize lets requests be posted while the owner is busy.
const inboxSize = 256

// drainLimit bounds the items taken before answers are flushed.
const drainLimit = 256

// run handles items until stop is closed and the checkpoint is as current as the
// disk allows.
func (o *owner) run(stop <-chan struct{}) {
	defer close(o.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for stopping := false; ; {
		select {
		case i := <-o.inbox:
			o.handle(i)
		case <-timer.C:
		case <-stop:
			stopping, stop = true, nil
			o.drain() // items posted before the stop
		}
		o.step()
		waiting := o.keeper.Waiting()
		o.waiting.Store(waiting > 0)
		o.metrics.Waiting(waiting)
		now := o.now()
		if stopping && o.keeper.Settled(now) {
			return
		}
		// A due time in the past means "at once", but must not cause a busy loop.
		timer.Reset(max(o.keeper.NextWake(now).Sub(now), time.Millisecond))
	}
}

func (o *owner) step() {
	now := o.now()
	o.keeper.Step(now)
	if o.stepped != nil {
		o.stepped(o.keeper, now)
	}
}

// handle takes one item and those already queued behind it, so that parallel requests share
// one checkpoint write and one plan.
func (o *owner) handle(i item) {
	o.take(i)
	o.drain()
}

// drain takes queued items, at most drainLimit.
func (o *owner) drain() {
	for range drainLimit {
		select {
		case next := <-o.inbox:
			o.take(next)
		default:
			return
		}
	}
}

func (o *owner) take(i item) {
	if i.message != nil {
		o.keeper.Handle(o.now(), i.message)
		return
	}
	i.ask(o.now())
}

// errEnded means that the owner no longer answers.
var errEnded = errors.New("ipamd has ended")

// post hands over a message from another goroutine. It gives up when the context ends or the
// owner has ended.
func (o *owner) post(ctx context.Context, m keeper.Message) error {
	select {
	case o.inbox <- item{message: m}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-o.ended:
		return errEnded
	}
}

// deliver posts a message, however long that takes. If the owner has ended, the message is
// dropped: it no longer matters.
func (o *owner) deliver(m keeper.Message) {
	select {
	case o.inbox <- item{message: m}:
	case <-o.ended:
	}
}

// tryPost posts a message that is useful but will come again: it is dropped while the inbox
// is full.
func (o *owner) tryPost(m keeper.Message) {
	select {
	case o.inbox <- item{message: m}:
	default:
	}
}

// ask runs a question in the owner's goroutine, between two messages, and returns its answer.
// It returns false if the owner has ended.
func ask[T any](o *owner, question func(k *keeper.Keeper, now time.Time) T) (T, bool) {
	reply := make(chan T, 1)
	select {
	case o.inbox <- item{ask: func(now time.Time) { reply <- question(o.keeper, now) }}:
	case <-o.ended:
	}
	return answered(o, reply)
}

// answered waits for the owner's reply to something that was posted. It returns false if the
// owner ended without replying.
func answered[T any](o *owner, reply <-chan T) (T, bool) {
	select {
	case r := <-reply:
		return r, true
	case <-o.ended:
	}
	select {
	case r := <-reply: // it was the owner's last reply
		return r, true
	default:
		var none T
		return none, false
	}
}

// outside carries out what the keeper decides.
type outside struct {
	*executor
	images   chan keeper.Image // one at a time: writing does not block
	recorder *recorder
}

func (x *outside) Write(i keeper.Image)                { x.images <- i }
func (x *outside) Record(at time.Time, e keeper.Event) { x.recorder.record(at, e) }

// writeCheckpoints writes images until the owner has ended.
func writeCheckpoints(o *owner, images <-chan keeper.Image, files *checkpoints) {
	for {
		select {
		case img := <-images:
			o.deliver(keeper.Committed{Gen: img.Gen, Err: files.write(img)})
		case <-o.ended:
			return
		}
	}
}
