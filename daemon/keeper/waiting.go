package keeper

import (
	"errors"
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// enqueue makes a request wait for the pool, unless waiting cannot help.
func (k *Keeper) enqueue(r *Add, now time.Time) {
	k.record(now, PoolMissed{Pod: r.pod()})
	if !r.Deadline.After(now) {
		k.fail(r, now, k.outlook(r, now))
		return
	}
	k.waiting = append(k.waiting, r)
}

// serveWaiting gives addresses that have become free to waiting requests, oldest first, and
// answers requests that have timed out or for which nothing can become free in time.
func (k *Keeper) serveWaiting(now time.Time) {
	if len(k.waiting) == 0 {
		return
	}
	// The same for all of a kind, and needed only if one gets nothing.
	known := map[bool]outlook{}
	ahead := func(r *Add) outlook {
		multi := r.Request.RequiresMultiNIC
		if _, ok := known[multi]; !ok {
			known[multi] = k.outlook(r, now)
		}
		return known[multi]
	}
	dry := map[bool]bool{} // for pods with an interface per network card, and for others
	owed := 0              // the number of the former that keep waiting
	k.waiting = slices.DeleteFunc(k.waiting, func(r *Add) bool {
		// If there was no address for one request, there is none for those behind it, unless they
		// already have one.
		multi := r.Request.RequiresMultiNIC
		if s := r.sandbox(0); (!dry[multi] || k.holds(s)) && !k.isDropping(s) {
			if err := k.assign(r, owed, now); !errors.Is(err, ipam.ErrNoAddress) {
				return true
			}
			dry[multi] = true
			dry[true] = true // without one address there cannot be several
		}
		if k.terminating || !r.Deadline.After(now) || ahead(r).cannotSucceed(r.Deadline) {
			k.fail(r, now, ahead(r))
			return true
		}
		if multi {
			owed++
		}
		return false
	})
}

// outlook is what can be expected of the pool while nothing is free.
type outlook struct {
	growing bool      // an operation that may bring addresses is in flight
	cooled  time.Time // when the next cooling address is free; zero if none is cooling
	blocked bool
	code    cause.Code // if blocked
	detail  string
}

func (k *Keeper) outlook(r *Add, now time.Time) outlook {
	// After a restart, addresses may wait for EC2 to confirm them.
	ahead := outlook{cooled: k.nextCooled(now), growing: k.recon.lastEC2.IsZero()}
	ahead.growing = ahead.growing || len(k.recon.adopting) > 0 // these may bring addresses
	ahead.growing = ahead.growing || k.awaitsENIConfig(now)
	attaching := false
	for _, op := range k.ops {
		attaching = attaching || op.Kind == warmpool.PendingAttach
		ahead.growing = ahead.growing || attaching || op.Kind == warmpool.PendingAssign
	}
	ahead.code, ahead.detail, ahead.blocked = k.Blocked(now, r.Request.RequiresMultiNIC)
	switch {
	case ahead.code != cause.PoolFull:
	case attaching: // late, so the planner does not count on it
		ahead.blocked = false
	case len(k.recon.adopting) > 0:
		// The cause is not the node's limit: an ENI that is being attached or detached occupies the
		// slot.
		ahead.code = cause.ENILinkMissing
		if k.growth.code != "" {
			ahead.code = k.growth.code
		}
		ahead.detail = ahead.code.Title() + ", and a network interface being attached or detached occupies a slot; " + ahead.detail
	}
	return ahead
}

// Blocked returns why an ADD would get no address now and none is on its way; see
// [warmpool.Blocked]. A pod with an interface per network card needs an address of each card,
// any other pod an address of any card.
func (k *Keeper) Blocked(now time.Time, everyCard bool) (cause.Code, string, bool) {
	if !k.settings.Provisioning {
		return cause.ProvisioningDisabled, cause.ProvisioningDisabled.Title(), true
	}
	s, p := k.snapshot(now), k.effective(now)
	var code cause.Code
	var text string
	for i, card := range k.cards() {
		c, t, blocked := warmpool.Blocked(s, p, now, card)
		if why := k.noENIConfig(); c == cause.NoUsableSubnet && why != "" {
			c, t = cause.ENIConfigMissing, cause.ENIConfigMissing.Title()+": "+why
		}
		if blocked == everyCard {
			return c, t, blocked
		}
		if i == 0 {
			code, text = c, t // the first card's reason is the best one
		}
	}
	return code, text, !everyCard
}

// cannotSucceed reports whether the pool can neither grow nor have an address cool down before a
// deadline: then the ADD fails at once.
func (l outlook) cannotSucceed(deadline time.Time) bool {
	if l.growing || (!l.cooled.IsZero() && l.cooled.Before(deadline)) {
		return false
	}
	return l.blocked && !TransientCause(l.code)
}

// TransientCause reports whether the same ADD may soon succeed without intervention.
func TransientCause(c cause.Code) bool {
	switch c {
	case cause.PoolFull, cause.NoUsableSubnet, cause.ENIConfigMissing, cause.NodeUnschedulable, cause.ProvisioningDisabled, cause.EC2Unauthorized,
		cause.BranchInvalid, cause.BranchConflict, cause.LinkConflict:
		return false
	default:
		return true
	}
}

// missedPod is a pod whose last ADD got no address.
type missedPod struct {
	every bool // it asked for one per network card
	at    time.Time
}

// missedHolds is how long the pool grows for a pod whose ADD got no address: kubelet retries
// after 10 to 15 s.
const missedHolds = time.Minute

func (k *Keeper) miss(r *Add, now time.Time) {
	maps.DeleteFunc(k.missed, func(_ podName, p missedPod) bool { return now.Sub(p.at) >= missedHolds })
	k.missed[podName{r.Request.PodNamespace, r.Request.PodName}] = missedPod{every: r.Request.RequiresMultiNIC, at: now}
}

// retrying counts the pods whose last ADD recently got no address and that are neither waiting
// nor expected. Where an ADD may not wait at all, only this shows the pods to a pool that
// grows only on demand.
func (k *Keeper) retrying(now time.Time) (every, one int) {
	if len(k.missed) == 0 {
		return 0, 0
	}
	waits := k.waitingPods()
	for name, pod := range k.missed {
		bound, there := k.bound[name]
		switch {
		case waits[name] || now.Sub(pod.at) >= missedHolds:
		case k.boundKnown && (!there || now.Sub(bound.since) < boundPatience):
		case pod.every:
			every++
		default:
			one++
		}
	}
	return every, one
}

// waitingPods are the pods whose ADD is waiting.
func (k *Keeper) waitingPods() map[podName]bool {
	waits := make(map[podName]bool, len(k.waiting))
	for _, r := range k.waiting {
		waits[podName{r.Request.PodNamespace, r.Request.PodName}] = true
	}
	return waits
}

// growthError is the last failed attempt to grow, with no success since: the likely reason
// why an ADD waits.
type growthError struct {
	at   time.Time
	kind warmpool.PendingKind
	code cause.Code
	text string // what EC2 said
}

// failureHolds is how old a failure may be when an ADD arrives and still count as its reason:
// the next attempt is under way, or about to start.
const failureHolds = time.Minute

// fail answers a request that gets no address with the best known reason: what blocks growth
// now, else the last failure, else the action that takes so long.
func (k *Keeper) fail(r *Add, now time.Time, ahead outlook) {
	code, detail := cause.PoolDry, cause.PoolDry.Title()
	if last := k.growth; last.at.After(r.Arrived.Add(-failureHolds)) {
		code, detail = last.code, last.code.Title()+": "+last.text
	} else if full := k.subnets.full(k.settings.Subnets, now); full != "" {
		code, detail = cause.SubnetExhausted, full
	}
	switch slow, noLink := k.slowest(now); {
	case k.terminating:
		code, detail = cause.DaemonTerminating, cause.DaemonTerminating.Title()
	case ahead.blocked:
		code, detail = ahead.code, ahead.detail
		if last := k.growth; last.code == code {
			detail += "; the last attempt: " + last.text // it names the action and EC2's message
		}
	case slow != "":
		if noLink && code == cause.PoolDry {
			code, detail = cause.ENILinkMissing, cause.ENILinkMissing.Title()
		}
		detail += "; " + slow
	}
	k.miss(r, now)
	if waited := now.Sub(r.Arrived); waited >= 100*time.Millisecond {
		detail += " (waited " + waited.Round(100*time.Millisecond).String() + ")"
	}
	k.failAdd(r, now, code, detail, TransientCause(code) || code == cause.ENIConfigMissing && k.awaitsENIConfig(now))
}

// slowAction is how long a pool action may take before it is named as the reason. A normal
// attach is faster.
const slowAction = 5 * time.Second

// slowest describes the oldest pool action in flight if it is slow, and reports whether EC2
// has done its part.
func (k *Keeper) slowest(now time.Time) (text string, noLink bool) {
	var oldest *Operation
	for _, op := range k.ops {
		if oldest == nil || op.ID < oldest.ID {
			oldest = op
		}
	}
	if oldest == nil || now.Sub(oldest.Started) < slowAction {
		return "", false
	}
	text = "EC2 has not finished the " + ActionName(oldest.Kind)
	if oldest.ENI != "" {
		text += " on " + string(oldest.ENI)
	}
	if oldest.AwaitsLink != "" {
		text = "the link of " + string(oldest.AwaitsLink) + " has not appeared after its attach"
	}
	return text + " that began " + now.Sub(oldest.Started).Round(100*time.Millisecond).String() + " ago", oldest.AwaitsLink != ""
}

// nextCooled returns when the next cooling address becomes free; zero if none is cooling.
func (k *Keeper) nextCooled(now time.Time) time.Time {
	var next time.Time
	for _, e := range k.book.Snapshot().ENIs {
		if e.Excluded || e.Held || e.Quarantined() {
			continue
		}
		for _, c := range e.CIDRs {
			if c.Held || c.Quarantined() {
				continue
			}
			for _, a := range c.Records {
				if !a.Cooling(now, k.policy.Cooldown) {
					continue
				}
				at := ipam.CooldownEnd(a.UnassignedAt, now, k.policy.Cooldown)
				if next.IsZero() || at.Before(next) {
					next = at
				}
			}
		}
	}
	return next
}
