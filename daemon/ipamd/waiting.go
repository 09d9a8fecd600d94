package ipamd

import (
	"errors"
	"slices"
	"sync"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// enqueue lets a request wait for the pool, unless waiting cannot help.
func (o *owner) enqueue(r *addRequest, now time.Time) {
	o.metrics.NoAddress()
	if !r.deadline.After(now) {
		o.fail(r, now, o.outlook(now))
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
	// The same for all of them, and only needed when one goes without.
	ahead := sync.OnceValue(func() outlook { return o.outlook(now) })
	o.waiting = slices.DeleteFunc(o.waiting, func(r *addRequest) bool {
		if err := o.assign(r, now); !errors.Is(err, ipam.ErrNoAddress) {
			return true
		}
		if o.terminating || !r.deadline.After(now) || ahead().hopeless(r.deadline) {
			o.fail(r, now, ahead())
			return true
		}
		return false
	})
}

// outlook is what the pool can hope for while nothing is free.
type outlook struct {
	growing bool      // operations are in flight
	cooled  time.Time // when the next cooling address is free; zero: none is cooling
	blocked bool
	code    cause.Code // if blocked
	detail  string
}

func (o *owner) outlook(now time.Time) outlook {
	ahead := outlook{growing: len(o.ops) > 0, cooled: o.nextCooled(now)}
	if !o.node.provisioning {
		ahead.blocked, ahead.code, ahead.detail = true, cause.ProvisioningDisabled, cause.ProvisioningDisabled.Title()
		return ahead
	}
	ahead.code, ahead.detail, ahead.blocked = warmpool.Blocked(o.snapshot(), o.policy, now, 0)
	return ahead
}

// hopeless reports whether the pool can neither grow nor cool down before a
// deadline: failing at once is then kinder than a wait.
func (l outlook) hopeless(deadline time.Time) bool {
	if l.growing || (!l.cooled.IsZero() && l.cooled.Before(deadline)) {
		return false
	}
	return l.blocked && !transientCause(l.code)
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

// fail answers a request that goes without, with the best reason known: what stands
// in the way now, else what failed while it waited, else what is taking so long.
func (o *owner) fail(r *addRequest, now time.Time, ahead outlook) {
	code, detail := cause.PoolDry, cause.PoolDry.Title()
	if last, ok := o.history.growthErrorSince(r.arrived); ok {
		code, detail = last.code, last.detail
	}
	switch slow := o.slowest(now); {
	case o.terminating:
		code, detail = cause.DaemonTerminating, cause.DaemonTerminating.Title()
	case ahead.blocked:
		code, detail = ahead.code, ahead.detail
		if last := o.history.growth; last.code == code {
			detail += "; the last attempt: " + last.text // names the action and what EC2 said
		}
	case slow != "":
		detail += "; " + slow
	}
	if waited := now.Sub(r.arrived); waited >= 100*time.Millisecond {
		detail += " (waited " + waited.Round(100*time.Millisecond).String() + ")"
	}
	o.failAdd(r, now, code, detail, transientCause(code))
}

// slowAction is how long a pool action may take before it is worth a mention: a
// normal attach is done in less.
const slowAction = 5 * time.Second

// slowest describes the oldest pool action in flight if it is slow.
func (o *owner) slowest(now time.Time) string {
	var oldest *operation
	for _, op := range o.ops {
		if oldest == nil || op.id < oldest.id {
			oldest = op
		}
	}
	if oldest == nil || now.Sub(oldest.started) < slowAction {
		return ""
	}
	text := "EC2 has not finished the " + pendingName(oldest.pending.Kind)
	if oldest.pending.ENI != "" {
		text += " on " + string(oldest.pending.ENI)
	}
	if oldest.awaitsLink != "" {
		text = "the link of " + string(oldest.awaitsLink) + " has not appeared after its attach"
	}
	return text + " that began " + now.Sub(oldest.started).Round(100*time.Millisecond).String() + " ago"
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
