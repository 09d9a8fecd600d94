package ipamd

import (
	"errors"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// enqueue lets a request wait for the pool, unless waiting cannot help.
func (o *owner) enqueue(r *addRequest, now time.Time) {
	o.metrics.NoAddress()
	if !r.deadline.After(now) {
		o.giveUp(r, now)
		return
	}
	o.waiting = append(o.waiting, r)
}

// serveWaiting gives waiting requests, oldest first, what has become free, and
// answers those whose time is over or for whom nothing can become free in time.
func (o *owner) serveWaiting(now time.Time) {
	if len(o.waiting) == 0 {
		return
	}
	o.waiting = slices.DeleteFunc(o.waiting, func(r *addRequest) bool {
		if err := o.assign(r, now); !errors.Is(err, ipam.ErrNoAddress) {
			return true
		}
		if o.terminating || !r.deadline.After(now) || o.hopeless(r, now) {
			o.giveUp(r, now)
			return true
		}
		return false
	})
	o.metrics.Waiting(len(o.waiting))
}

// hopeless reports whether the pool can neither grow nor cool down before the
// request's deadline: failing at once is then kinder than a wait.
func (o *owner) hopeless(r *addRequest, now time.Time) bool {
	if len(o.ops) > 0 {
		return false
	}
	if cooled := o.nextCooled(now); !cooled.IsZero() && cooled.Before(r.deadline) {
		return false
	}
	code, _, blocked := warmpool.Blocked(o.snapshot(), o.policy, now, 0)
	return blocked && !transientCause(code)
}

// transientCause reports whether the same ADD may succeed soon without anybody's help.
func transientCause(c cause.Code) bool {
	switch c {
	case cause.PoolFull, cause.NoUsableSubnet, cause.NodeUnschedulable, cause.ProvisioningDisabled, cause.EC2Unauthorized:
		return false
	default:
		return true
	}
}

// giveUp fails a request with the best reason known.
func (o *owner) giveUp(r *addRequest, now time.Time) {
	code, detail := cause.PoolDry, ""
	if c, d, blocked := warmpool.Blocked(o.snapshot(), o.policy, now, 0); blocked {
		code, detail = c, d
	} else if last, ok := o.history.growthErrorSince(r.arrived); ok {
		code, detail = last.code, last.detail
	}
	if o.terminating {
		code, detail = cause.DaemonTerminating, ""
	}
	if detail == "" {
		detail = code.Title()
	}
	if waited := now.Sub(r.arrived); waited >= 100*time.Millisecond {
		detail += " (waited " + waited.Round(100*time.Millisecond).String() + ")"
	}
	o.failAdd(r, now, code, detail, transientCause(code))
}

// nextCooled returns when the next cooling address becomes free; zero if none is
// cooling.
func (o *owner) nextCooled(now time.Time) time.Time {
	var next time.Time
	for _, e := range o.book.Snapshot().ENIs {
		if e.Excluded || e.Held {
			continue
		}
		for _, c := range e.CIDRs {
			for _, a := range c.Records {
				if !a.Cooling(now, o.policy.Cooldown) {
					continue
				}
				// An address rests while now − unassigned ≤ cooldown.
				at := a.UnassignedAt.Add(o.policy.Cooldown + time.Nanosecond)
				if next.IsZero() || at.Before(next) {
					next = at
				}
			}
		}
	}
	return next
}
