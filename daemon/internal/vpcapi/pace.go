package vpcapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"cnictl/daemon/budget"
)

// pacer keeps every attempt of every call, the SDK's retries included, within the
// process's budget.
type pacer struct {
	mu     sync.Mutex
	budget *budget.Budget // guarded by mu
}

func newPacer(p budget.Policy, jitter budget.Jitter) *pacer {
	if jitter == nil {
		jitter = func(n time.Duration) time.Duration { return rand.N(n) }
	}
	return &pacer{budget: budget.New(p, jitter)}
}

// recheck bounds one sleep: meanwhile a success elsewhere may have raised the rate, or a
// pod that needs the call may have arrived.
const recheck = 250 * time.Millisecond

// wait returns when the action's next request may be made. If the caller's deadline is
// earlier, it fails at once, since waiting cannot succeed.
func (p *pacer) wait(ctx context.Context, action string) (waited time.Duration, err error) {
	start := time.Now()
	for {
		now := time.Now()
		left := p.take(now, action, wantOf(ctx))
		if left == 0 {
			return now.Sub(start), nil
		}
		if deadline, ok := ctx.Deadline(); ok && now.Add(left).After(deadline) {
			return now.Sub(start), &WaitError{Action: action, Left: left, err: context.DeadlineExceeded}
		}
		t := time.NewTimer(min(left, recheck))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return time.Since(start), &WaitError{Action: action, Left: left, err: ctx.Err()}
		}
	}
}

func (p *pacer) take(now time.Time, action string, want budget.Want) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.budget.Take(now, action, want)
}

// note reports an attempt's outcome to the budget. An attempt without an answer, or with a
// server error, says nothing about the request limits.
func (p *pacer) note(started time.Time, action string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case IsThrottled(err):
		p.budget.Throttled(started, time.Now(), action)
	case !IsUnanswered(err):
		p.budget.Succeeded(started, time.Now(), action)
	}
}

func (p *pacer) states(now time.Time) []budget.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.budget.States(now)
}

// install puts the pacer after the SDK's retry loop, so that it sees each attempt, and
// before the signing, so that the wait does not make the signature stale.
func (p *pacer) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("RequestBudget", p.attempt), "Retry", middleware.After)
}

func (p *pacer) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	action, m := awsmiddleware.GetOperationName(ctx), measureOf(ctx)
	waited, err := p.wait(ctx, action)
	m.waited += waited
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, m.held(err)
	}
	started := time.Now()
	out, metadata, err := next.HandleFinalize(ctx, in)
	p.note(started, action, err)
	m.ended(err)
	return out, metadata, err
}

// pacedRetryer skips the SDK's pause after a throttle, which would add to the budget's wait
// before every attempt. The number of attempts and the pauses after other failures remain
// the SDK's (AWS_MAX_ATTEMPTS, AWS_RETRY_MODE).
type pacedRetryer struct{ aws.RetryerV2 }

func (r pacedRetryer) RetryDelay(attempt int, err error) (time.Duration, error) {
	if IsThrottled(err) {
		return 0, nil
	}
	return r.RetryerV2.RetryDelay(attempt, err)
}

// WaitError means that a call ended while it waited for its turn in the budget: the caller
// gave up, or its deadline is before the turn.
type WaitError struct {
	Action string
	Left   time.Duration // estimated time to its turn
	Lost   bool          // an earlier attempt got no answer: EC2 may have carried it out
	err    error         // the context's
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("ec2:%s was held back by the local rate limit, which EC2's throttling lowers; next slot in %v: %v", e.Action, e.Left.Round(time.Millisecond), e.err)
}

func (e *WaitError) Unwrap() error { return e.err }

// CanceledError keeps the SDK from making another attempt.
func (e *WaitError) CanceledError() bool { return true }

type urgentKey struct{}

// Urgent marks the calls made with the context as needed by a waiting pod. They may use the
// whole budget; all others are housekeeping and leave a part for them.
func Urgent(ctx context.Context) context.Context {
	return UrgentWhile(ctx, func() bool { return true })
}

// UrgentWhile is Urgent for as long as pods reports that some are waiting. It is for calls
// that were begun for a reserve, which pods may need by now. pods is called before each
// request, in the call's goroutine.
func UrgentWhile(ctx context.Context, pods func() bool) context.Context {
	return context.WithValue(ctx, urgentKey{}, pods)
}

func wantOf(ctx context.Context) budget.Want {
	if urgent, ok := ctx.Value(urgentKey{}).(func() bool); ok && urgent() {
		return budget.Urgent
	}
	return budget.Housekeeping
}

// measure sums up a call's attempts. They are sequential, so it needs no lock.
type measure struct {
	waited    time.Duration
	attempts  int
	throttled int
	lost      bool // an attempt got no answer
}

func (m *measure) ended(err error) {
	m.attempts++
	switch {
	case IsThrottled(err):
		m.throttled++
	case IsUnanswered(err):
		m.lost = true
	}
}

func (m *measure) held(err error) error {
	if w, ok := err.(*WaitError); ok { //nolint:errorlint // made by wait, not wrapped
		w.Lost = m.lost
	}
	return err
}

type measureKey struct{}

func measureOf(ctx context.Context) *measure {
	if m, ok := ctx.Value(measureKey{}).(*measure); ok {
		return m
	}
	return &measure{} // the context is not from call
}
