package ipamd

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

type opID uint64

// operation is one action of a plan that the executor is carrying out.
type operation struct {
	id      opID
	pending warmpool.Pending
	cidrs   []netip.Prefix // of a release
	subnet  string         // of an attach
	reason  warmpool.Reason
	started time.Time
	ended   func() // takes it out of the gauge of actions in progress

	awaitsLink ipam.ENIID // attached by EC2, its link has not been set up yet
}

// snapshot is what the planner sees now.
func (o *owner) snapshot() warmpool.Snapshot {
	now := o.now()
	s := warmpool.Snapshot{
		Book:           o.book.Snapshot(),
		Limits:         o.node.limits,
		Subnets:        o.subnets.forPlanner(o.node.subnetPolicy, o.backoff, now),
		NoUsableSubnet: o.subnets.known() && len(o.node.subnetPolicy.Candidates(o.subnets.views())) == 0,
		OtherENIs:      o.node.otherENIs,
		OtherDevices:   o.node.otherDevices,
		Waiting:        []int{len(o.waiting)},
		AttachBackoff:  o.backoff.attach.until,
		ReleaseBackoff: o.backoff.release.until,
		LastScaleDown:  o.lastScaleDown,
		Terminating:    o.terminating,
		Unschedulable:  o.unschedulable,

		AttachBackoffCause: o.backoff.attach.cause,
	}
	s.ENIBackoff, s.ENIBackoffCause = o.backoff.enis(now)
	for _, id := range slices.Sorted(maps.Keys(o.ops)) {
		s.Pending = append(s.Pending, o.ops[id].pending)
	}
	return s
}

// plan asks the planner what to do and starts it.
func (o *owner) plan(now time.Time) {
	o.wakeAt = time.Time{}
	if !o.node.provisioning {
		return
	}
	actions := warmpool.Plan(o.snapshot(), o.policy, now)
	o.logPlan(actions)
	for _, a := range actions {
		switch a := a.(type) {
		case warmpool.AttachENI:
			if o.subnets.stale(now) {
				// One list serves all ENIs of this plan; planning goes on when it is here.
				o.refreshSubnets(now)
				continue
			}
			o.startAttach(a, now)
		case warmpool.AssignAddresses:
			o.startAssign(a.ENI, a.Count, 0, a.Reason, now)
		case warmpool.AssignPrefixes:
			o.startAssign(a.ENI, 0, a.Count, a.Reason, now)
		case warmpool.UnassignAddresses:
			o.startRelease(a.ENI, a.CIDRs, a.Reason, now)
		case warmpool.UnassignPrefixes:
			o.startRelease(a.ENI, a.CIDRs, a.Reason, now)
		case warmpool.DetachENI:
			o.startDetach(a, now)
		case warmpool.Wait:
			o.wakeAt = a.Until
		}
	}
}

// logPlan logs a plan when it differs from the one before.
func (o *owner) logPlan(actions []warmpool.Action) {
	var b strings.Builder
	for _, a := range actions {
		if _, wait := a.(warmpool.Wait); wait {
			continue
		}
		fmt.Fprintf(&b, "%T %+v; ", a, a)
	}
	if digest := b.String(); digest != o.planned {
		o.planned = digest
		if digest != "" {
			o.log.Debug("pool plan", slog.String(logline.KeyDetail, digest))
		}
	}
}

func (o *owner) start(op operation, now time.Time) *operation {
	o.lastOp++
	op.id, op.started, op.ended = o.lastOp, now, o.metrics.Action(actionName(op.pending.Kind))
	o.ops[op.id] = &op
	o.metrics.PlanAction(pendingName(op.pending.Kind), string(op.reason))
	o.log.Info("pool action started", slog.String(logline.KeyAction, pendingName(op.pending.Kind)), slog.String(logline.KeyENI, string(op.pending.ENI)),
		slog.Int(logline.KeyNetworkCard, op.pending.Card), slog.Int(logline.KeyDevice, op.pending.Device), slog.Int(logline.KeyAddresses, op.pending.IPs),
		slog.Int(logline.KeyPrefixes, op.pending.Prefixes), slog.String(logline.KeyReason, string(op.reason)))
	return &op
}

// finish ends an operation; the reply of EC2 is applied by the caller.
func (o *owner) finish(id opID, now time.Time, err error) *operation {
	op := o.ops[id]
	delete(o.ops, id)
	op.ended()
	if err != nil {
		o.metrics.InternalError(errorName(op.pending.Kind, causeOf(err)))
		o.history.actionFailed(now, pendingName(op.pending.Kind), causeOf(err), err)
		o.log.Warn("pool action failed", slog.String(logline.KeyAction, pendingName(op.pending.Kind)), slog.String(logline.KeyENI, string(op.pending.ENI)),
			slog.String(logline.KeyCause, string(causeOf(err))), slog.Any(logline.KeyError, err), slog.Duration(logline.KeyDuration, now.Sub(op.started)))
		return op
	}
	o.log.Info("pool action done", slog.String(logline.KeyAction, pendingName(op.pending.Kind)), slog.String(logline.KeyENI, string(op.pending.ENI)),
		slog.Duration(logline.KeyDuration, now.Sub(op.started)))
	return op
}

func (o *owner) startAttach(a warmpool.AttachENI, now time.Time) {
	subnet := a.SubnetID
	if subnet == "" {
		subnet = o.node.identity.SubnetID
	}
	op := o.start(operation{
		pending: warmpool.Pending{Kind: warmpool.PendingAttach, Card: a.Card, Device: a.Device, IPs: a.IPs, Prefixes: a.Prefixes, SubnetID: subnet},
		subnet:  subnet, reason: a.Reason,
	}, now)
	o.subnets.take(subnet, 1+a.IPs+16*a.Prefixes)
	o.exec.attach(op.id, attachPlan{
		card: a.Card, device: a.Device, subnet: subnet, cidr: o.subnets.cidr(subnet),
		ips: a.IPs, prefixes: a.Prefixes, groups: o.node.securityGroups,
	})
}

// eniAttached reports that EC2 has attached an ENI whose link is awaited now.
type eniAttached struct {
	id  opID
	eni ipam.ENIID
}

func (m eniAttached) handle(o *owner, _ time.Time) {
	if op, ok := o.ops[m.id]; ok {
		op.awaitsLink = m.eni
	}
}

// attachDone reports a new ENI that is attached and whose host routes stand.
type attachDone struct {
	id         opID
	eni        ipam.ENI
	attachment string
	cidrs      []netip.Prefix
	left       bool // failed, but still attached: it occupies its slot until it is adopted or gone
	err        error
}

func (m attachDone) handle(o *owner, now time.Time) {
	op := o.finish(m.id, now, m.err)
	if m.left {
		o.attachments[m.eni.ID] = m.attachment
		o.node.countOther(m.eni.Card, m.eni.Device)
	}
	if m.err != nil {
		o.growthFailed(op, m.err, now)
		return
	}
	o.backoff.attach.succeed(op.started)
	o.backoff.gave(op)
	m.eni.AttachedAt = now
	o.attachments[m.eni.ID] = m.attachment
	o.apply(now, ipam.AttachENI{ENI: m.eni, CIDRs: m.cidrs})
	o.log.Info(fmt.Sprintf(textENISetUp, m.eni.ID), slog.String(logline.KeyENI, string(m.eni.ID)), slog.Int(logline.KeyDevice, m.eni.Device)) //nolint:sloglint // the original's line
}

// growthFailed turns the failure of an attach into the clock that fits it.
func (o *owner) growthFailed(op *operation, err error, now time.Time) {
	switch {
	case vpcapi.IsSubnetExhausted(err), vpcapi.IsFragmented(err):
		o.subnetShort(op, err, now)
	case vpcapi.IsThrottled(err):
		o.backoff.attach.fail(op.started, now, causeOf(err), throttleFirst, throttleMost)
	default:
		o.backoff.attach.fail(op.started, now, causeOf(err), exhaustedFirst, exhaustedMost)
	}
}

// subnetShort sets the clock of a subnet that had no addresses, or no /28s, to give.
func (o *owner) subnetShort(op *operation, err error, now time.Time) {
	o.log.Warn(textSubnetShort, slog.String(logline.KeySubnet, op.subnet), slog.String(logline.KeyENI, string(op.pending.ENI)), slog.Any(logline.KeyError, err))
	clocks := o.backoff.subnet
	if vpcapi.IsFragmented(err) && op.pending.Prefixes > 0 {
		clocks = o.backoff.subnetPrefixes
	}
	of(clocks, op.subnet).fail(op.started, now, causeOf(err), exhaustedFirst, exhaustedMost)
	o.subnets.expire()
}

func (o *owner) startAssign(id ipam.ENIID, ips, prefixes int, why warmpool.Reason, now time.Time) {
	op := o.start(operation{
		pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: id, Card: o.cardOf(id), IPs: ips, Prefixes: prefixes},
		subnet:  o.subnetOf(id), reason: why,
	}, now)
	o.subnets.take(op.subnet, ips+16*prefixes)
	o.exec.assign(op.id, id, ips, prefixes)
}

// assignDone reports addresses or prefixes that EC2 added to an ENI.
type assignDone struct {
	id    opID
	cidrs []netip.Prefix
	full  bool // EC2 says that the ENI takes no more; cidrs is all it holds
	err   error
}

func (m assignDone) handle(o *owner, now time.Time) {
	op := o.finish(m.id, now, m.err)
	eni := op.pending.ENI
	if m.err == nil {
		o.apply(now, ipam.AddCIDRs{ID: eni, CIDRs: m.cidrs})
	}
	switch {
	case m.full:
		// Whether or not the book knew all of them, asking again at once is in vain.
		of(o.backoff.eni, eni).fail(op.started, now, cause.PoolFull, exhaustedFirst, exhaustedMost)
	case m.err == nil:
		delete(o.backoff.eni, eni)
		o.backoff.gave(op)
	case vpcapi.IsThrottled(m.err):
		of(o.backoff.eni, eni).fail(op.started, now, causeOf(m.err), throttleFirst, throttleMost)
	case vpcapi.IsFragmented(m.err), vpcapi.IsSubnetExhausted(m.err):
		of(o.backoff.eni, eni).fail(op.started, now, causeOf(m.err), exhaustedFirst, exhaustedMost)
		o.subnetShort(op, m.err, now)
	default:
		of(o.backoff.eni, eni).fail(op.started, now, causeOf(m.err), exhaustedFirst, exhaustedMost)
		o.noteVanished(op, m.err, now)
	}
}

// noteVanished stops giving addresses of an ENI that EC2 does not know any more:
// somebody deleted it. Without pods it leaves the pool like any excluded ENI.
func (o *owner) noteVanished(op *operation, err error, now time.Time) {
	if !vpcapi.IsNotFound(err) {
		return
	}
	o.log.Error("ENI deleted by somebody else, its addresses are given to no further pod", slog.String(logline.KeyENI, string(op.pending.ENI)))
	o.apply(now, ipam.SetExcluded{ID: op.pending.ENI, Excluded: true})
}

func (o *owner) startRelease(id ipam.ENIID, cidrs []netip.Prefix, why warmpool.Reason, now time.Time) {
	o.lastScaleDown = now
	if _, err := o.book.Apply(now, ipam.HoldCIDRs{ID: id, CIDRs: cidrs}); err != nil {
		o.log.Error("release not started", slog.String(logline.KeyENI, string(id)), slog.Any(logline.KeyError, err))
		return
	}
	op := o.start(operation{
		pending: warmpool.Pending{Kind: warmpool.PendingRelease, ENI: id, Card: o.cardOf(id)}, cidrs: cidrs, reason: why,
	}, now)
	o.exec.release(op.id, id, cidrs)
}

// releaseDone reports CIDRs that EC2 took back.
type releaseDone struct {
	id  opID
	err error
}

func (m releaseDone) handle(o *owner, now time.Time) {
	op := o.finish(m.id, now, m.err)
	if m.err != nil {
		o.backoff.release.fail(op.started, now, causeOf(m.err), throttleFirst, throttleMost)
		o.apply(now, ipam.UnholdCIDRs{ID: op.pending.ENI, CIDRs: op.cidrs})
		return
	}
	o.backoff.release.succeed(op.started)
	o.apply(now, ipam.RemoveCIDRs{ID: op.pending.ENI, CIDRs: op.cidrs})
}

func (o *owner) startDetach(a warmpool.DetachENI, now time.Time) {
	o.lastScaleDown = now
	eni, ok := o.eni(a.ENI)
	if !ok {
		return
	}
	if _, err := o.book.Apply(now, ipam.HoldENI{ID: a.ENI}); err != nil {
		o.log.Error("detach not started", slog.String(logline.KeyENI, string(a.ENI)), slog.Any(logline.KeyError, err))
		return
	}
	op := o.start(operation{
		pending: warmpool.Pending{Kind: warmpool.PendingDetach, ENI: a.ENI, Card: eni.Card, Device: eni.Device}, reason: a.Reason,
	}, now)
	o.exec.detach(op.id, eni.ENI, o.attachments[a.ENI])
}

// detachDone reports an ENI that is gone from the instance; its deletion goes on.
type detachDone struct {
	id  opID
	err error
}

func (m detachDone) handle(o *owner, now time.Time) {
	op := o.finish(m.id, now, m.err)
	if m.err != nil {
		o.backoff.release.fail(op.started, now, causeOf(m.err), exhaustedFirst, exhaustedMost)
		o.apply(now, ipam.UnholdENI{ID: op.pending.ENI})
		return
	}
	o.backoff.release.succeed(op.started)
	delete(o.backoff.eni, op.pending.ENI)
	delete(o.attachments, op.pending.ENI)
	o.apply(now, ipam.DetachENI{ID: op.pending.ENI})
}

// apply puts a finished operation into the book. The book refuses only what
// contradicts it, which is a bug: it is logged and the state stays as it was.
func (o *owner) apply(now time.Time, ev ipam.Event) {
	if _, err := o.book.Apply(now, ev); err != nil {
		o.history.failed(now, "address book", cause.Internal, err)
		o.log.Error("address book refused an event", slog.String(logline.KeyEvent, fmt.Sprintf("%T", ev)), slog.Any(logline.KeyError, err))
	}
}

func (o *owner) eni(id ipam.ENIID) (ipam.ENIState, bool) {
	for _, e := range o.book.Snapshot().ENIs {
		if e.ID == id {
			return e, true
		}
	}
	return ipam.ENIState{}, false
}

func (o *owner) cardOf(id ipam.ENIID) int { e, _ := o.eni(id); return e.Card }

func (o *owner) subnetOf(id ipam.ENIID) string { e, _ := o.eni(id); return e.SubnetID }
