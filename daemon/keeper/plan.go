package keeper

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// OpID numbers the operations of one run of the daemon.
type OpID uint64

// Operation is one action of a plan in progress. The [Task] that carries it out is a copy:
// only the Keeper's Operation tracks the progress.
type Operation struct {
	ID               OpID
	warmpool.Pending                // as the planner counts it
	CIDRs            []netip.Prefix // of a release
	Reason           warmpool.Reason
	Started          time.Time

	Created    ipam.ENIID // created in EC2
	AwaitsLink ipam.ENIID // attached in EC2, but its link has not been set up yet
	Accepted   time.Time  // when EC2 accepted the attach

	// Used only by the task.
	ipv6   bool
	slots  int             // secondary IPs or prefixes that an ENI of the type takes
	create CreateENI       // of an attach
	subnet netip.Prefix    // of an attach: the block of its subnet
	detach resync.Attached // of a detach
}

func (op Operation) run(ctx context.Context, c Calls) {
	switch op.Kind {
	case warmpool.PendingAttach:
		runAttach(ctx, c, op)
	case warmpool.PendingAssign:
		c.Post(assignAddresses(ctx, c, op))
	case warmpool.PendingRelease:
		c.Post(releaseCIDRs(ctx, c, op))
	case warmpool.PendingDetach:
		err := detachENI(ctx, c, op.detach)
		c.Post(DetachDone{op.ID, err})
		if err == nil {
			DeleteTask{[]ipam.ENIID{op.ENI}}.run(ctx, c)
		}
	}
}

// ActionName names a kind of operation for users and metrics.
func ActionName(k warmpool.PendingKind) string {
	switch k {
	case warmpool.PendingAttach:
		return "attach"
	case warmpool.PendingAssign:
		return "assign"
	case warmpool.PendingRelease:
		return "release"
	default:
		return "detach"
	}
}

// lateAfter is how long the planner counts on what an operation will bring: an attach takes
// EC2 a few seconds.
const lateAfter = 15 * time.Second

// lateAnyway is the same for an attach that EC2 has not accepted yet.
const lateAnyway = 5 * time.Minute

// late reports whether the planner no longer counts on what an operation will bring. An attach
// is late when EC2 has accepted it and the link does not appear. Before that it waits for EC2's
// request limits: a second attach would wait as well, and bring one ENI too many.
func (op *Operation) late(now time.Time) bool {
	if op.Kind == warmpool.PendingAttach {
		return !op.Accepted.IsZero() && now.Sub(op.Accepted) >= lateAfter || now.Sub(op.Started) >= lateAnyway
	}
	return now.Sub(op.Started) >= lateAfter
}

// snapshot is what the planner sees now.
func (k *Keeper) snapshot(now time.Time) warmpool.Snapshot {
	others, devices := k.recon.slots(len(k.limits.ENIsByCard))
	s := warmpool.Snapshot{
		Book:           k.book.Snapshot(),
		Limits:         k.lowered(),
		Stated:         k.stated,
		Subnets:        k.subnets.forPlanner(k.settings.Subnets, k.backoff, now),
		NoUsableSubnet: k.noSubnet(),
		OtherENIs:      others,
		OtherDevices:   devices,
		Misplaced:      k.misplaced(),
		Waiting:        make([]int, len(k.limits.ENIsByCard)),
		Expected:       k.expected(now),
		AttachBackoff:  k.backoff.attach.Until,
		ReleaseBackoff: k.backoff.release.Until,
		LastScaleDown:  k.lastScaleDown,
		Throttled:      k.throttledUntil.After(now),
		Terminating:    k.terminating,
		Unschedulable:  k.unschedulable || k.nodeAwaited(now),

		AttachBackoffCause: k.backoff.attach.Cause,
	}
	for _, card := range k.recon.efaOnly {
		if s.Unmanaged == nil {
			s.Unmanaged = make([]bool, len(k.limits.ENIsByCard))
		}
		if card < len(s.Unmanaged) {
			s.Unmanaged[card] = true
		}
	}
	s.ENIBackoff, s.ENIBackoffCause = k.backoff.enis(now)
	for _, op := range k.inFlight() {
		p := op.Pending
		p.Late = op.late(now)
		s.Pending = append(s.Pending, p)
	}
	k.countWaiting(&s, now)
	return s
}

// noSubnet reports whether there is no subnet in which the daemon may create an ENI.
func (k *Keeper) noSubnet() bool {
	if k.noENIConfig() != "" {
		return true
	}
	return k.subnets.known() && len(k.settings.Subnets.Candidates(k.subnets.all)) == 0
}

// countWaiting counts the pods that want an address now, by card: those whose ADD is waiting
// and those that will retry. A pod that wants one address waits for the first card that can
// take another ENI; a pod that wants one per card waits for them all.
func (k *Keeper) countWaiting(s *warmpool.Snapshot, now time.Time) {
	every, one := k.retrying(now)
	for _, r := range k.waiting {
		if r.Request.RequiresMultiNIC {
			every++
		} else {
			one++
		}
	}
	if every > 0 {
		for _, card := range k.cards() {
			s.Waiting[card] += every
		}
	}
	if one > 0 {
		s.Waiting[k.growing(*s, now)] += one
	}
}

// growing is the first card whose pool has, or will have, an address for one more pod.
func (k *Keeper) growing(s warmpool.Snapshot, now time.Time) int {
	cards := k.cards()
	if len(cards) == 1 {
		return 0
	}
	for _, card := range cards {
		if _, _, blocked := warmpool.Blocked(s, k.effective(now), now, card); !blocked {
			return card
		}
	}
	return 0
}

// effective is the policy as it applies now. Until the Node has been read, labels may change the
// targets, so they are not followed.
func (k *Keeper) effective(now time.Time) warmpool.Policy {
	p := k.policy
	p.ManageUnschedulable = p.ManageUnschedulable && !k.nodeAwaited(now)
	p.ReserveTrunkSlot = k.reservesTrunkSlot()
	return p
}

// plan gets a plan from the planner and starts it.
func (k *Keeper) plan(now time.Time) {
	k.wakeAt = time.Time{}
	k.reviewLimits(now)
	if !k.settings.Provisioning {
		return
	}
	if k.subnets.known() && k.noSubnet() && k.settings.Subnets.Fallback() != "" && k.subnets.stale(now) {
		k.refreshSubnets() // with no usable subnet, no plan asks for the list
	}
	actions := warmpool.Plan(k.snapshot(now), k.effective(now), now)
	k.recordPlan(actions, now)
	for _, a := range actions {
		switch a := a.(type) {
		case warmpool.AttachENI:
			if k.subnets.stale(now) {
				// One list serves all ENIs of this plan; planning continues when it arrives.
				k.refreshSubnets()
				continue
			}
			k.startAttach(a, now)
		case warmpool.AssignAddresses:
			k.startAssign(a.ENI, a.Count, 0, a.Reason, now)
		case warmpool.AssignPrefixes:
			k.startAssign(a.ENI, 0, a.Count, a.Reason, now)
		case warmpool.UnassignAddresses:
			k.startRelease(a.ENI, a.CIDRs, a.Reason, now)
		case warmpool.UnassignPrefixes:
			k.startRelease(a.ENI, a.CIDRs, a.Reason, now)
		case warmpool.DetachENI:
			k.startDetach(a, now)
		case warmpool.Wait:
			k.wakeAt = a.Until
		}
	}
}

// Next returns the current plan. It changes nothing.
func (k *Keeper) Next(now time.Time) []warmpool.Action {
	if !k.settings.Provisioning {
		return nil
	}
	return warmpool.Plan(k.snapshot(now), k.effective(now), now)
}

// recordPlan records a plan that differs from the previous one.
func (k *Keeper) recordPlan(actions []warmpool.Action, now time.Time) {
	var b strings.Builder
	for _, a := range actions {
		if _, wait := a.(warmpool.Wait); wait {
			continue
		}
		fmt.Fprintf(&b, "%T %+v; ", a, a)
	}
	if digest := b.String(); digest != k.planned {
		k.planned = digest
		if digest != "" {
			k.record(now, Planned{Plan: digest})
		}
	}
}

// inFlight lists the operations in progress, oldest first.
func (k *Keeper) inFlight() []*Operation {
	if len(k.ops) == 0 {
		return nil // most plans take this path: it allocates nothing
	}
	return slices.SortedFunc(maps.Values(k.ops), func(a, b *Operation) int { return cmp.Compare(a.ID, b.ID) })
}

// start records an operation. The caller begins its task.
func (k *Keeper) start(op Operation, now time.Time) *Operation {
	k.lastOp++
	op.ID, op.Started, op.ipv6 = k.lastOp, now, k.settings.IPv6
	op.slots = k.limits.Slots()
	k.ops[op.ID] = &op
	if k.recon.observing {
		k.recon.touched = append(k.recon.touched, &op)
	}
	k.record(now, ActionStarted{Operation: op})
	return &op
}

// finish ends an operation. The caller applies its result.
func (k *Keeper) finish(id OpID, now time.Time, err error) *Operation {
	op := k.ops[id]
	delete(k.ops, id)
	took, waited := now.Sub(op.Started), time.Duration(0)
	if !op.Accepted.IsZero() {
		waited = max(now.Sub(op.Accepted), 1)
	}
	grows := op.Kind == warmpool.PendingAttach || op.Kind == warmpool.PendingAssign
	if err == nil {
		// New addresses on an existing ENI do not explain why another ENI is missing.
		if op.Kind == warmpool.PendingAttach || grows && k.growth.kind == op.Kind {
			k.growth = growthError{}
		}
		k.record(now, ActionDone{Operation: *op, Took: took, Waited: waited})
		return op
	}
	if grows {
		k.growth = growthError{at: now, kind: op.Kind, code: CauseOf(err), text: bounded(err.Error())}
	}
	k.record(now, ActionFailed{Operation: *op, Took: took, Waited: waited, Err: err})
	return op
}

// bounded cuts an external message to a readable length.
func bounded(message string) string {
	const limit = 300
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "…"
}
