package sim

import (
	"time"

	"cnictl/daemon/budget"
	"cnictl/daemon/keeper"
)

// ClientSpec describes how a daemon's EC2 client retries and paces requests.
type ClientSpec struct {
	Attempts int            // for a throttled call; 0 means 1
	Budget   *budget.Policy // nil if requests are not paced
}

// Shipped returns the client of our daemon: the SDK's three attempts, each within the node's
// request budget.
func Shipped() ClientSpec {
	p := budget.Default()
	return ClientSpec{Attempts: sdkAttempts, Budget: &p}
}

// Values of aws-sdk-go-v2's standard retryer (aws/retry of v1.36 to v1.47, the defaults): a
// delay of up to 2^attempt seconds, and a quota that each retry lowers by 5.
const (
	sdkAttempts  = 3
	sdkQuota     = 500
	sdkRetryCost = 5
)

// client sits between a daemon and EC2.
type client struct {
	attempts   int
	quota      int // left for retries
	jitter     func(time.Duration) time.Duration
	budget     *budget.Budget
	onThrottle func() // may be nil
}

func (w *World) newClient(s ClientSpec, jitter func(time.Duration) time.Duration) *client {
	c := &client{attempts: max(1, s.Attempts), quota: sdkQuota, jitter: jitter}
	if s.Budget != nil {
		c.budget = budget.New(*s.Budget, budget.Jitter(jitter))
	}
	return c
}

// do makes a call, and repeats it while EC2 throttles it and attempts are left.
func (c *client) do(w *World, action string, want budget.Want, sleep func(time.Duration) error, request func() error) error {
	for attempt := 1; ; attempt++ {
		if err := c.admit(w, action, want, sleep); err != nil {
			return err
		}
		begun := w.now()
		err := request()
		c.record(begun, w.now(), action, err)
		switch {
		case !keeper.IsThrottled(err):
			c.succeeded(attempt)
			return err
		case attempt >= c.attempts || c.quota < sdkRetryCost:
			return err
		}
		c.quota -= sdkRetryCost
		if c.budget != nil {
			continue // the budget decides the wait
		}
		if sleep(c.jitter(time.Second<<attempt)) != nil {
			return err
		}
	}
}

// succeeded refunds the last retry's cost, or a little for a call without one.
func (c *client) succeeded(attempt int) {
	back := 1
	if attempt > 1 {
		back = sdkRetryCost
	}
	c.quota = min(sdkQuota, c.quota+back)
}

// budgetRecheck is as in vpcapi: another call's success may have raised the rate.
const budgetRecheck = 5 * time.Second

// admit waits until the budget allows a request.
func (c *client) admit(w *World, action string, want budget.Want, sleep func(time.Duration) error) error {
	if c.budget == nil {
		return nil
	}
	for {
		wait := c.budget.Take(w.now(), action, want)
		if wait == 0 {
			return nil
		}
		if err := sleep(min(wait, budgetRecheck)); err != nil {
			return err
		}
	}
}

// record passes EC2's answer to the budget.
func (c *client) record(begun, now time.Time, action string, err error) {
	if c.onThrottle != nil && keeper.IsThrottled(err) {
		c.onThrottle()
	}
	switch {
	case c.budget == nil:
	case keeper.IsThrottled(err):
		c.budget.Throttled(begun, now, action)
	default:
		c.budget.Succeeded(begun, now, action)
	}
}
