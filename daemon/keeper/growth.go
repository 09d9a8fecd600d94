package keeper

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/ipam"
	"cnictl/daemon/procedure"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// OpID numbers the operations of one run of the daemon.
type OpID uint64

// Operation is one action of a plan that is being carried out.
type Operation struct {
	ID      OpID
	Pending warmpool.Pending
	CIDRs   []netip.Prefix // of a release
	Subnet  string         // of an attach or assign
	Reason  warmpool.Reason
	Started time.Time

	Created    ipam.ENIID // made by EC2
	AwaitsLink ipam.ENIID // attached by EC2, its link has not been set up yet
	Accepted   time.Time  // since when
}

// ActionName names a kind of operation for people and metrics.
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

// lateAfter is how long what an operation will bring is counted on: an attach takes
// EC2 a few seconds.
const lateAfter = 15 * time.Second

// snapshot is what the planner sees now.
func (k *Keeper) snapshot(now time.Time) warmpool.Snapshot {
	others, devices := k.recon.slots(len(k.limits.ENIsByCard))
	s := warmpool.Snapshot{
		Book:           k.book.Snapshot(),
		Limits:         k.limits,
		Subnets:        k.subnets.forPlanner(k.settings.Subnets, k.backoff, now),
		NoUsableSubnet: k.subnets.known() && len(k.settings.Subnets.Candidates(k.subnets.all)) == 0,
		OtherENIs:      others,
		OtherDevices:   devices,
		Waiting:        []int{len(k.waiting)},
		AttachBackoff:  k.backoff.attach.Until,
		ReleaseBackoff: k.backoff.release.Until,
		LastScaleDown:  k.lastScaleDown,
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
	for _, id := range slices.Sorted(maps.Keys(k.ops)) {
		op := k.ops[id]
		p := op.Pending
		p.Late = now.Sub(op.Started) >= lateAfter
		s.Pending = append(s.Pending, p)
	}
	return s
}

// plan asks the planner what to do and starts it.
func (k *Keeper) plan(now time.Time) {
	k.wakeAt = time.Time{}
	if !k.settings.Provisioning {
		return
	}
	if k.subnets.known() && len(k.settings.Subnets.Candidates(k.subnets.all)) == 0 && k.subnets.stale(now) {
		k.refreshSubnets() // without a usable subnet no plan asks for the list
	}
	actions := warmpool.Plan(k.snapshot(now), k.policy, now)
	k.tellPlan(actions, now)
	for _, a := range actions {
		switch a := a.(type) {
		case warmpool.AttachENI:
			if k.subnets.stale(now) {
				// One list serves all ENIs of this plan; planning goes on when it is here.
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

// Next is the plan for this moment, with the present policy or another one. It
// changes nothing.
func (k *Keeper) Next(now time.Time, change func(*warmpool.Policy)) []warmpool.Action {
	if !k.settings.Provisioning {
		return nil
	}
	p := k.policy
	if change != nil {
		change(&p)
	}
	return warmpool.Plan(k.snapshot(now), p, now)
}

// tellPlan tells a plan when it differs from the one before.
func (k *Keeper) tellPlan(actions []warmpool.Action, now time.Time) {
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
			k.record(Event{Kind: Planned, At: now, Text: digest})
		}
	}
}

func (k *Keeper) start(op Operation, now time.Time) *Operation {
	k.lastOp++
	op.ID, op.Started = k.lastOp, now
	k.ops[op.ID] = &op
	if k.recon.looking {
		k.recon.touched = append(k.recon.touched, &op)
	}
	k.record(op.event(ActionStarted, now))
	return &op
}

func (op *Operation) event(kind Kind, now time.Time) Event {
	var waited time.Duration
	if !op.Accepted.IsZero() {
		waited = max(now.Sub(op.Accepted), 1)
	}
	return Event{
		Kind: kind, At: now, Op: op.ID, Action: op.Pending.Kind, ENI: op.Pending.ENI, Card: op.Pending.Card, Device: op.Pending.Device,
		IPs: op.Pending.IPs, Prefixes: op.Pending.Prefixes, Subnet: op.Subnet, CIDRs: op.CIDRs, Reason: string(op.Reason),
		Took: now.Sub(op.Started), Waited: waited,
	}
}

// finish ends an operation; what it brought is applied by the caller.
func (k *Keeper) finish(id OpID, now time.Time, err error) *Operation {
	op := k.ops[id]
	delete(k.ops, id)
	grows := op.Pending.Kind == warmpool.PendingAttach || op.Pending.Kind == warmpool.PendingAssign
	if err == nil {
		if grows {
			k.growth = growthError{}
		}
		k.record(op.event(ActionDone, now))
		return op
	}
	why := procedure.CauseOf(err)
	if grows {
		k.growth = growthError{at: now, code: why, text: bounded(err.Error())}
	}
	e := op.event(ActionFailed, now)
	e.Cause, e.Err = why, err
	k.record(e)
	return op
}

// bounded cuts a message of the outside to what a person reads.
func bounded(message string) string {
	const limit = 300
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "…"
}

func (k *Keeper) startAttach(a warmpool.AttachENI, now time.Time) {
	subnet := a.SubnetID
	if subnet == "" {
		subnet = k.settings.Subnets.NodeSubnet
	}
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingAttach, Card: a.Card, Device: a.Device, IPs: a.IPs, Prefixes: a.Prefixes, SubnetID: subnet},
		Subnet:  subnet, Reason: a.Reason,
	}, now)
	k.subnets.take(subnet, 1+a.IPs+16*a.Prefixes)
	k.out.Begin(AttachTask{ID: op.ID, KeepENI: k.bugs.LeakFailedAttach, Plan: procedure.AttachPlan{
		Card: a.Card, Device: a.Device, SubnetID: subnet, Subnet: k.subnets.cidr(subnet),
		IPs: a.IPs, Prefixes: a.Prefixes, Groups: k.groups, ConnTrack: k.tracking,
		Token: k.settings.TokenPrefix + "-" + strconv.FormatUint(uint64(op.ID), 10),
	}})
}

// ENICreated reports that EC2 has made an ENI; it is to be attached now.
type ENICreated struct {
	ID  OpID
	ENI ipam.ENIID
}

func (m ENICreated) handle(k *Keeper, _ time.Time) {
	if op, ok := k.ops[m.ID]; ok {
		op.Created = m.ENI
	}
}

// AttachAccepted reports that EC2 has taken an attachment; the link is awaited now.
type AttachAccepted struct {
	ID  OpID
	ENI ipam.ENIID
}

func (m AttachAccepted) handle(k *Keeper, now time.Time) {
	if op, ok := k.ops[m.ID]; ok {
		op.AwaitsLink, op.Accepted = m.ENI, now
	}
}

// AttachDone reports a new ENI that is attached and whose host routes stand, or why
// there is none.
type AttachDone struct {
	ID     OpID
	Result procedure.AttachResult
}

func (m AttachDone) handle(k *Keeper, now time.Time) {
	r := m.Result
	op := k.finish(m.ID, now, r.Err)
	if r.Err != nil {
		if r.Attached { // on its way out, or in after all
			k.attachments[r.ENI.ID] = r.Attachment
			k.recon.adopting[r.ENI.ID] = Slot{r.ENI.Card, r.ENI.Device}
		}
		k.growthFailed(op, r.Err, now)
		return
	}
	k.free("attach", "", &k.backoff.attach, op, now)
	k.gave(op, now)
	r.ENI.AttachedAt = now
	k.recon.given(r.CIDRs)
	k.attachments[r.ENI.ID] = r.Attachment
	crashpoint.Here(crashpoint.BeforeBookAttachENI)
	k.take(resync.Attached{ENI: r.ENI, CIDRs: r.CIDRs}, now)
	crashpoint.Here(crashpoint.AfterBookAttachENI)
	k.record(Event{Kind: ENIAttached, At: now, ENI: r.ENI.ID, Card: r.ENI.Card, Device: r.ENI.Device, Subnet: r.ENI.SubnetID, CIDRs: r.CIDRs})
}

// growthFailed turns the failure of an attach into the clock that fits it.
func (k *Keeper) growthFailed(op *Operation, err error, now time.Time) {
	if procedure.IsSubnetExhausted(err) || procedure.IsFragmented(err) {
		k.subnetShort(op, err, now)
		return
	}
	k.hold("attach", "", &k.backoff.attach, op, now, procedure.CauseOf(err))
}

// subnetShort sets the clock of a subnet that had no addresses, or no /28s, to give.
func (k *Keeper) subnetShort(op *Operation, err error, now time.Time) {
	clocks, scope := k.backoff.subnet, "subnet"
	if procedure.IsFragmented(err) && op.Pending.Prefixes > 0 {
		clocks, scope = k.backoff.subnetPrefixes, "subnet-prefix"
	}
	k.hold(scope, op.Subnet, of(clocks, op.Subnet), op, now, procedure.CauseOf(err))
	// Others may have become usable: their tags and counts are read again.
	k.subnets.expire()
	k.refreshSubnets()
	k.record(Event{Kind: SubnetShort, At: now, Subnet: op.Subnet, ENI: op.Pending.ENI, Cause: procedure.CauseOf(err), Err: err})
}

func (k *Keeper) startAssign(id ipam.ENIID, ips, prefixes int, why warmpool.Reason, now time.Time) {
	e, _ := k.eni(id)
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: id, Card: e.Card, Device: e.Device, IPs: ips, Prefixes: prefixes},
		Subnet:  e.SubnetID, Reason: why,
	}, now)
	k.subnets.take(op.Subnet, ips+16*prefixes)
	k.out.Begin(AssignTask{op.ID, id, ips, prefixes})
}

// AssignDone reports addresses or prefixes that EC2 added to an ENI.
type AssignDone struct {
	ID     OpID
	Result procedure.AssignResult
}

func (m AssignDone) handle(k *Keeper, now time.Time) {
	r := m.Result
	op := k.finish(m.ID, now, r.Err)
	eni := op.Pending.ENI
	switch {
	case r.All:
		k.addCIDRs(eni, k.recon.settled(r.CIDRs), now)
	case r.Err == nil:
		k.recon.given(r.CIDRs)
		k.addCIDRs(eni, r.CIDRs, now)
	}
	switch {
	case r.Full:
		// Whether or not the book knew all of them, asking again at once is in vain.
		k.hold("eni", string(eni), of(k.backoff.eni, eni), op, now, cause.PoolFull)
	case r.Err == nil:
		k.free("eni", string(eni), k.backoff.eni[eni], op, now)
		delete(k.backoff.eni, eni)
		k.gave(op, now)
	default:
		k.hold("eni", string(eni), of(k.backoff.eni, eni), op, now, procedure.CauseOf(r.Err))
		if procedure.IsFragmented(r.Err) || procedure.IsSubnetExhausted(r.Err) {
			k.subnetShort(op, r.Err, now)
		}
		k.noteVanished(op, r.Err, now)
	}
}

// addCIDRs puts into the book what it lacks of an ENI's CIDRs.
func (k *Keeper) addCIDRs(id ipam.ENIID, all []netip.Prefix, now time.Time) {
	e, ok := k.eni(id)
	if !ok {
		return // it left meanwhile
	}
	crashpoint.Here(crashpoint.BeforeBookAddCIDRs)
	k.take(resync.Attached{ENI: e.ENI, CIDRs: all}, now)
	crashpoint.Here(crashpoint.AfterBookAddCIDRs)
}

// take puts into the book what it lacks of an ENI, as EC2 has just said.
func (k *Keeper) take(a resync.Attached, now time.Time) {
	k.conclude(a.CIDRs, now)
	for _, ev := range resync.Adopt(k.book.Snapshot(), []resync.Attached{a}) {
		k.apply(now, ev)
		if added, ok := ev.(ipam.AddCIDRs); ok {
			k.record(Event{Kind: CIDRsAdded, At: now, ENI: a.ENI.ID, CIDRs: added.CIDRs})
		}
	}
}

// conclude ends the release of what EC2 has given anew: it has taken it back, though its
// answer to that comes later.
func (k *Keeper) conclude(given []netip.Prefix, now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(k.ops)) {
		op := k.ops[id]
		if op.Pending.Kind != warmpool.PendingRelease {
			continue
		}
		if gone := both(op.CIDRs, given); len(gone) > 0 {
			op.CIDRs = without(op.CIDRs, gone)
			k.removeCIDRs(op.Pending.ENI, gone, now)
		}
	}
}

func both(a, b []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(a), func(p netip.Prefix) bool { return !slices.Contains(b, p) })
}

func without(a, b []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(a), func(p netip.Prefix) bool { return slices.Contains(b, p) })
}

func (k *Keeper) removeCIDRs(eni ipam.ENIID, cidrs []netip.Prefix, now time.Time) {
	crashpoint.Here(crashpoint.BeforeBookRemoveCIDRs)
	k.apply(now, ipam.RemoveCIDRs{ID: eni, CIDRs: cidrs})
	crashpoint.Here(crashpoint.AfterBookRemoveCIDRs)
	k.record(Event{Kind: CIDRsRemoved, At: now, ENI: eni, CIDRs: cidrs})
}

// noteVanished stops giving addresses of an ENI that EC2 does not know any more:
// somebody deleted it. The next look at EC2 puts it away.
func (k *Keeper) noteVanished(op *Operation, err error, now time.Time) {
	if !procedure.IsNotFound(err) {
		return
	}
	k.record(Event{Kind: ENIVanished, At: now, ENI: op.Pending.ENI, Err: err})
	k.apply(now, ipam.QuarantineENI{ID: op.Pending.ENI})
	k.recon.needEC2 = true
	k.recon.lookSoon(now)
}

func (k *Keeper) startRelease(id ipam.ENIID, cidrs []netip.Prefix, why warmpool.Reason, now time.Time) {
	k.lastScaleDown = now
	if !k.bugs.ReleaseWithoutHold {
		if _, err := k.book.Apply(now, ipam.HoldCIDRs{ID: id, CIDRs: cidrs}); err != nil {
			k.record(Event{Kind: BookRefused, At: now, ENI: id, Cause: cause.Internal, Text: "HoldCIDRs", Err: err})
			return
		}
	}
	e, _ := k.eni(id)
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingRelease, ENI: id, Card: e.Card, Device: e.Device}, CIDRs: cidrs, Reason: why,
	}, now)
	k.out.Begin(ReleaseTask{op.ID, id, cidrs})
}

// ReleaseDone reports CIDRs that EC2 took back.
type ReleaseDone struct {
	ID     OpID
	Result procedure.ReleaseResult
}

func (m ReleaseDone) handle(k *Keeper, now time.Time) {
	r := m.Result
	op := k.finish(m.ID, now, r.Err)
	eni := op.Pending.ENI
	if r.Err == nil {
		k.free("release", "", &k.backoff.release, op, now)
	} else {
		k.hold("release", "", &k.backoff.release, op, now, procedure.CauseOf(r.Err))
	}
	gone, kept := both(op.CIDRs, r.Gone), without(op.CIDRs, r.Gone)
	if len(gone) > 0 {
		k.recon.givenBack(gone, now)
		e, _ := k.eni(eni)
		k.subnets.give(e.SubnetID, addressesIn(gone))
		k.removeCIDRs(eni, gone, now)
	}
	if len(kept) > 0 && !k.bugs.ReleaseWithoutHold {
		k.apply(now, ipam.UnholdCIDRs{ID: eni, CIDRs: kept})
	}
}

func (k *Keeper) startDetach(a warmpool.DetachENI, now time.Time) {
	k.lastScaleDown = now
	eni, ok := k.eni(a.ENI)
	if !ok {
		return
	}
	if _, err := k.book.Apply(now, ipam.HoldENI{ID: a.ENI}); err != nil {
		k.record(Event{Kind: BookRefused, At: now, ENI: a.ENI, Cause: cause.Internal, Text: "HoldENI", Err: err})
		return
	}
	op := k.start(Operation{
		Pending: warmpool.Pending{Kind: warmpool.PendingDetach, ENI: a.ENI, Card: eni.Card, Device: eni.Device}, Reason: a.Reason,
	}, now)
	var cidrs []netip.Prefix
	for _, c := range eni.CIDRs {
		cidrs = append(cidrs, c.Prefix)
	}
	k.out.Begin(DetachTask{ID: op.ID, ENI: eni.ENI, CIDRs: cidrs, Attachment: k.attachments[a.ENI], KeepENI: k.bugs.LeakDetached})
}

// DetachDone reports an ENI that is gone from the instance; its deletion goes on.
type DetachDone struct {
	ID  OpID
	Err error
}

func (m DetachDone) handle(k *Keeper, now time.Time) {
	op := k.finish(m.ID, now, m.Err)
	if m.Err != nil {
		k.hold("release", "", &k.backoff.release, op, now, procedure.CauseOf(m.Err))
		k.apply(now, ipam.UnholdENI{ID: op.Pending.ENI})
		return
	}
	k.free("release", "", &k.backoff.release, op, now)
	k.forget(op.Pending.ENI)
	if e, ok := k.eni(op.Pending.ENI); ok {
		held := 1 // the primary address
		for _, c := range e.CIDRs {
			held += c.Size()
		}
		k.subnets.give(e.SubnetID, held)
	}
	crashpoint.Here(crashpoint.BeforeBookDetachENI)
	k.apply(now, ipam.DetachENI{ID: op.Pending.ENI})
	crashpoint.Here(crashpoint.AfterBookDetachENI)
	k.record(Event{Kind: ENIDetached, At: now, ENI: op.Pending.ENI, Card: op.Pending.Card, Device: op.Pending.Device})
}

func (k *Keeper) forget(id ipam.ENIID) {
	delete(k.backoff.eni, id)
	delete(k.attachments, id)
}

// Adopted reports that an ENI that came late is ready for pods.
type Adopted struct{ Attached resync.Attached }

func (m Adopted) handle(k *Keeper, now time.Time) {
	a := m.Attached
	delete(k.recon.adopting, a.ENI.ID)
	a.ENI.AttachedAt = now
	k.take(a, now)
	k.record(Event{Kind: ENIAttached, At: now, ENI: a.ENI.ID, Card: a.ENI.Card, Device: a.ENI.Device, Subnet: a.ENI.SubnetID, CIDRs: a.CIDRs})
}

// Gone reports that an ENI that came late is not attached any more.
type Gone struct{ ENI ipam.ENI }

func (m Gone) handle(k *Keeper, _ time.Time) {
	delete(k.recon.adopting, m.ENI.ID)
	delete(k.attachments, m.ENI.ID)
}

// cidrsOf are the CIDRs that an event of the book is about.
func cidrsOf(ev ipam.Event) []netip.Prefix {
	switch ev := ev.(type) {
	case ipam.AttachENI:
		return ev.CIDRs
	case ipam.AddCIDRs:
		return ev.CIDRs
	case ipam.RemoveCIDRs:
		return ev.CIDRs
	}
	return nil
}

// EventName is the Text of a BookRefused about an event of that type.
func EventName(ev ipam.Event) string { return fmt.Sprintf("%T", ev) }
