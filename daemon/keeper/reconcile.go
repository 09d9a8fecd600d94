package keeper

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Read intervals. (Upstream reads only the metadata, and nothing for 60 s after a pool
// action.)
const (
	readPeriod = time.Minute
	// firstRead is early, to find what a DEL left behind while no daemon ran.
	firstRead = time.Second
	// linkEndDelay is when to read the links after a DEL: the runtime removes the network
	// namespace, and with it the link, a moment later.
	linkEndDelay = time.Second
	// ec2Spacing is the minimum time between two requested reads of EC2, since each
	// describes all ENIs of the instance.
	ec2Spacing = 15 * time.Second
	// EC2Every is how often EC2 is read even without a reason: only EC2 shows changed tags.
	// A thousand nodes make one request every two seconds.
	EC2Every = 30 * time.Minute
)

// reconciler is the Keeper's state between two reads.
type reconciler struct {
	jitter Jitter

	nextRead  time.Time // the periodic one
	soon      time.Time // the first read requested before nextRead; zero if none
	soonLast  time.Time // the last read requested
	confirm   time.Time // when the latest quarantine can be confirmed; zero if none
	needEC2   bool      // the next read includes EC2
	observing bool
	begun     time.Time    // start of the read in progress
	withEC2   bool         // the read in progress includes EC2
	touched   []*Operation // in flight at any time during the read
	released  []resync.Release

	others   []resync.Other              // attached, but not for the book
	adopting map[ipam.ENIID]Slot         // attached, to be set up or being detached
	moved    map[netip.Prefix]ipam.ENIID // CIDRs that the book has on a different ENI than EC2
	absent   resync.Absences             // pods without a link
	dropping map[ipam.Sandbox]bool       // sandboxes whose rules are being removed
	compared time.Time                   // last error-free read of the metadata or EC2, and the kernel
	lastEC2  time.Time                   // when EC2 last answered
	askedEC2 time.Time                   // when it was last asked
	earlyEC2 time.Time                   // when EC2 may be asked once ahead of time; zero if not
	lasting  map[resync.Note]bool        // lasting states that are already recorded

	efaOnly   []int     // network cards that cannot serve pods
	nextSweep time.Time // zero if one is in progress, or none is wanted
}

func newReconciler(now time.Time, jitter Jitter, sweep bool) reconciler {
	r := reconciler{
		jitter: jitter, nextRead: now.Add(firstRead), compared: now, lastEC2: now, askedEC2: now,
		adopting: make(map[ipam.ENIID]Slot), moved: make(map[netip.Prefix]ipam.ENIID), dropping: make(map[ipam.Sandbox]bool), lasting: make(map[resync.Note]bool),
	}
	if sweep {
		r.nextSweep = resync.NextSweep(now, jitter(resync.SweepJitter), time.Time{})
	}
	return r
}

// due returns when to read or sweep next; zero if a message comes first.
func (r *reconciler) due() time.Time {
	next := r.nextSweep
	for _, t := range []time.Time{r.nextRead, r.soon, r.confirm} {
		if !r.observing && !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// observeSoon requests a read at the given time or earlier.
func (r *reconciler) observeSoon(at time.Time) {
	if r.soon.IsZero() || at.Before(r.soon) {
		r.soon = at
	}
	if at.After(r.soonLast) {
		r.soonLast = at
	}
}

// observeBy brings the next periodic read forward.
func (r *reconciler) observeBy(at time.Time) {
	if at.Before(r.nextRead) {
		r.nextRead = at
	}
}

// noteReleased remembers released CIDRs that EC2's lists may still show for a while.
func (r *reconciler) noteReleased(cidrs []netip.Prefix, now time.Time) {
	for _, p := range cidrs {
		r.released = append(r.released, resync.Release{CIDR: p, At: now})
	}
}

// given forgets the release of CIDRs that EC2 has assigned again.
func (r *reconciler) given(cidrs []netip.Prefix) {
	r.released = slices.DeleteFunc(r.released, func(rel resync.Release) bool { return slices.Contains(cidrs, rel.CIDR) })
}

// settled removes released CIDRs from a list that EC2 returned: they may still be shown.
func (r *reconciler) settled(listed []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(listed), func(p netip.Prefix) bool {
		return slices.ContainsFunc(r.released, func(rel resync.Release) bool { return rel.CIDR == p })
	})
}

// slots returns the slots of ENIs that are not in the book, per card.
func (r *reconciler) slots(cards int) (enis []int, devices [][]int) {
	enis, devices = make([]int, cards), make([][]int, cards)
	add := func(s Slot) {
		if s.Card < cards {
			enis[s.Card]++
			devices[s.Card] = append(devices[s.Card], s.Device)
		}
	}
	for _, o := range r.others {
		if _, ours := r.adopting[o.ID]; !ours {
			add(Slot{o.Card, o.Device})
		}
	}
	for _, s := range r.adopting {
		add(s)
	}
	for i := range devices {
		slices.Sort(devices[i])
	}
	return enis, devices
}

// servesNone reports whether a network card cannot serve pods: its only ENI is an elastic
// fabric adapter without addresses.
func (r *reconciler) servesNone(card int) bool { return slices.Contains(r.efaOnly, card) }

// startReads starts whatever is due: a read of the outside, a sweep for leaked ENIs.
func (k *Keeper) startReads(now time.Time) {
	r := &k.recon
	if k.terminating {
		return
	}
	due := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	if due(r.confirm) {
		r.confirm, r.needEC2 = time.Time{}, true
		r.observeSoon(later(now, r.askedEC2.Add(ec2Spacing)))
	}
	if !r.observing && (due(r.nextRead) || due(r.soon)) {
		k.observe(now)
	}
	if k.settings.Provisioning && now.Sub(later(k.subnets.read, k.subnets.asked)) >= subnetEvery && !k.subnets.failed.Running(now) {
		k.subnets.asked = now
		k.refreshSubnets()
	}
	if !r.nextSweep.IsZero() && !r.nextSweep.After(now) {
		r.nextSweep = time.Time{}
		busy := k.busyENIs()
		for _, e := range k.book.Snapshot().ENIs {
			// An ENI that something else detached is not leaked until a reconcile has removed it
			// from the book.
			busy = append(busy, e.ID)
		}
		k.begin(SweepTask{resync.LeakInput{
			ClusterName: k.settings.ClusterName, Busy: busy, InUse: k.addresses(), InstanceID: k.settings.InstanceID, Started: k.started,
		}})
	}
}

func (k *Keeper) observe(now time.Time) {
	r := &k.recon
	r.observing, r.begun, r.soon = true, now, time.Time{}
	if r.soonLast.After(now) {
		r.soon = r.soonLast // this read is too early for it
	}
	periodic := !r.nextRead.After(now)
	r.withEC2 = r.needEC2 && (now.Sub(r.askedEC2) >= ec2Spacing || !r.earlyEC2.IsZero() && !r.earlyEC2.After(now))
	if periodic || r.withEC2 {
		period := readPeriod
		if k.awaitsTrunk(now) {
			period = trunkPoll
		}
		r.nextRead = now.Add(period - period/10 + r.jitter(period/5))
	}
	r.touched = r.touched[:0]
	for _, op := range k.ops {
		r.touched = append(r.touched, op)
	}
	if r.withEC2 {
		r.askedEC2, r.needEC2, r.earlyEC2 = now, false, time.Time{}
	}
	k.begin(ObserveTask{Metadata: periodic || r.withEC2, EC2: r.withEC2})
}

// busyENIs lists the ENIs that operations are working on.
func (k *Keeper) busyENIs() []ipam.ENIID {
	var out []ipam.ENIID
	for _, op := range k.ops {
		out = appendBusy(out, op)
	}
	for id := range k.recon.adopting {
		out = append(out, id)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func appendBusy(out []ipam.ENIID, op *Operation) []ipam.ENIID {
	for _, id := range []ipam.ENIID{op.ENI, op.Created} {
		if id != "" {
			out = append(out, id)
		}
	}
	return out
}

// busy is everything that operations have worked on since the read began.
func (k *Keeper) busy() resync.Busy {
	var b resync.Busy
	for _, op := range k.recon.touched {
		b.ENIs = appendBusy(b.ENIs, op)
		b.CIDRs = append(b.CIDRs, op.CIDRs...)
		if op.ENI == "" {
			b.Slots = append(b.Slots, resync.Slot{Card: op.Card, Device: op.Device})
		}
	}
	for id := range k.recon.adopting {
		b.ENIs = append(b.ENIs, id)
	}
	return b
}

// Observed reports what the outside shows. A part with an error is unknown.
type Observed struct {
	AskedMetadata bool
	Interfaces    []resync.Interface
	InterfacesErr error
	AskedEC2      bool
	ENIs          []resync.ENI // attached to the instance
	ENIsErr       error
	Links         []string // of the host
	Routes        []resync.PodRoute
	KernelErr     error
}

func (v Observed) handle(k *Keeper, now time.Time) {
	r := &k.recon
	r.observing = false
	if k.terminating {
		return // a DEL would wait for the removal of rules, which no longer begins
	}
	if v.KernelErr != nil {
		k.record(now, ReconcileFailed{Err: v.KernelErr})
	}
	if v.AskedEC2 {
		if v.ENIsErr != nil {
			r.needEC2 = true
			k.record(now, ReconcileFailed{Err: v.ENIsErr})
		} else {
			r.lastEC2 = now
			k.sg.record(v.ENIs, r.begun)
		}
	}
	if v.InterfacesErr != nil {
		k.record(now, ReconcileFailed{Err: v.InterfacesErr})
	}
	if (v.AskedMetadata || v.AskedEC2) && errors.Join(v.KernelErr, v.ENIsErr, v.InterfacesErr) == nil {
		r.compared = now
	}
	k.reconcile(v, now)
	k.findEnded(v, now)
	r.touched = r.touched[:0]
}

func known[T any](all []T, asked bool, err error) resync.Knowledge {
	switch {
	case !asked:
		return resync.NotAsked
	case err != nil:
		return resync.Failed
	}
	return resync.Known
}

func (k *Keeper) reconcilePolicy() resync.ReconcilePolicy {
	return resync.ReconcilePolicy{
		InstanceID: k.settings.InstanceID, PrimaryENI: k.settings.PrimaryENI, ManageUntagged: k.settings.ManageUntagged,
		MultiNIC: k.settings.MultiNIC, IPv6: k.settings.IPv6, Subnets: k.settings.Subnets, EC2Every: EC2Every, OrphanAge: k.orphanAge(),
	}
}

// reconcile updates the book to match what the outside shows.
func (k *Keeper) reconcile(v Observed, now time.Time) {
	r := &k.recon
	in := resync.ReconcileInput{
		Now: now, Book: k.book.Snapshot(),
		Policy:   k.reconcilePolicy(),
		EC2:      resync.EC2View{State: known(v.ENIs, v.AskedEC2, v.ENIsErr), At: r.begun, ENIs: v.ENIs},
		Metadata: resync.MetadataView{State: known(v.Interfaces, v.AskedMetadata, v.InterfacesErr), At: r.begun, Interfaces: v.Interfaces},
		Kernel:   resync.KernelView{State: known(v.Routes, true, v.KernelErr), Routes: v.Routes},
		Busy:     k.busy(), Released: r.released, Others: r.others, LastEC2: r.lastEC2,
	}
	if k.subnets.known() {
		in.Subnets = k.subnets.all
	}
	res := resync.Reconcile(in)
	for _, ev := range res.Events {
		k.applyFound(now, ev)
	}
	k.recordNotes(res, now)
	k.recheckAfterRest(res, now)
	r.released = slices.DeleteFunc(r.released, func(rel resync.Release) bool { return slices.Contains(res.Forget, rel.CIDR) })
	if res.NeedEC2 || v.AskedMetadata && !v.AskedEC2 && len(r.moved) > 0 {
		r.needEC2 = true
		r.observeSoon(later(now, r.askedEC2.Add(ec2Spacing)))
	}
	if !res.Settled {
		return
	}
	k.setOthers(res.Others, now)
	k.setMoved(res.Notes, in.Busy.ENIs)
	r.efaOnly = res.EFAOnlyCards
	moved := func(id ipam.ENIID) func(e ipam.ENI) bool { return func(e ipam.ENI) bool { return e.ID == id } }
	for _, e := range res.Gone {
		k.forget(e.ID)
	}
	for _, a := range res.SetUp {
		// An ENI that moved to another slot is torn down before it is set up.
		var before []ipam.ENI
		if i := slices.IndexFunc(res.Gone, moved(a.ENI.ID)); i >= 0 {
			before = res.Gone[i : i+1 : i+1]
		}
		k.adopt(a, before)
		if k.settings.Provisioning && !a.ENI.Trunk {
			found := described(v.ENIs, a.ENI.ID)
			k.begin(TagTask{found})
			k.noteUnending(found, r.begun)
		}
	}
	k.noteUnending(tagged(v.ENIs, k.settings.InstanceID), r.begun)
	gone := slices.DeleteFunc(slices.Clone(res.Gone), func(e ipam.ENI) bool {
		return slices.ContainsFunc(res.SetUp, func(a resync.Attached) bool { return a.ENI.ID == e.ID })
	})
	if len(gone) > 0 {
		k.begin(TearDownTask{gone})
	}
}

func described(all []resync.ENI, id ipam.ENIID) []resync.ENI {
	return slices.DeleteFunc(slices.Clone(all), func(e resync.ENI) bool { return e.ID != id })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// setOthers keeps the attached ENIs that are not for the book, and records new ones.
func (k *Keeper) setOthers(others []resync.Other, now time.Time) {
	for _, o := range others {
		if !slices.ContainsFunc(k.recon.others, func(known resync.Other) bool { return known.ID == o.ID && known.Why == o.Why }) {
			k.record(now, ENIUnmanaged{Other: o})
		}
	}
	k.recon.others = others
}

// setMoved keeps the CIDRs that the book cannot accept because it has them on another ENI.
// ENIs that operations were working on were not compared.
func (k *Keeper) setMoved(notes []resync.Note, busy []ipam.ENIID) {
	maps.DeleteFunc(k.recon.moved, func(_ netip.Prefix, id ipam.ENIID) bool { return !slices.Contains(busy, id) })
	for _, n := range notes {
		if n.Kind == resync.AddressConflict {
			k.recon.moved[n.CIDR] = n.ENI
		}
	}
}

// misplaced counts, per ENI, the CIDRs that EC2 has moved to it; nil if none. A CIDR in use on
// its other ENI does not count: the read that showed it elsewhere was older.
func (k *Keeper) misplaced() (out map[ipam.ENIID]int) {
	for p, id := range k.recon.moved {
		if k.inUse(p) {
			continue
		}
		if out == nil {
			out = make(map[ipam.ENIID]int)
		}
		out[id]++
	}
	return out
}

// inUse reports whether the book has a CIDR, or a part of it, on the ENI where EC2 is known to
// show it, and it is not being released.
func (k *Keeper) inUse(p netip.Prefix) bool {
	return slices.ContainsFunc(k.book.Snapshot().ENIs, func(e ipam.ENIState) bool {
		return !e.Quarantined() && !e.Held && slices.ContainsFunc(e.CIDRs, func(c ipam.CIDRState) bool {
			return c.Prefix.Overlaps(p) && !c.Quarantined() && !c.Held
		})
	})
}

// applyFound applies an event of a reconcile and keeps the ledger in step.
func (k *Keeper) applyFound(now time.Time, ev ipam.Event) {
	if r, ok := ev.(ipam.Restore); ok && k.unsettled[r.Address] {
		return // its route goes when its DEL is answered
	}
	ch, err := k.book.Apply(now, ev)
	if err != nil {
		k.record(now, BookRefused{Event: ev, ByReconcile: true, Err: err})
	}
	if restored, ok := ev.(ipam.Restore); ok {
		if a, held := k.book.Lookup(restored.Sandbox); held {
			k.ledger.put(a)
			k.changed()
		}
	}
	for _, a := range ch.Released {
		k.ledger.remove(a.Sandbox)
		k.changed()
	}
}

// recheckAfterRest asks EC2 again once it is certain whether the released addresses that it shows
// are outdated: they may have been assigned again.
func (k *Keeper) recheckAfterRest(res resync.ReconcileResult, now time.Time) {
	for _, n := range res.Notes {
		if n.Kind != resync.AddressesJustReleased {
			continue
		}
		for _, rel := range k.recon.released {
			if rel.CIDR == n.CIDR {
				k.recon.needEC2 = true
				k.recon.observeSoon(later(rel.At.Add(resync.ReleaseSettle+time.Second), k.recon.askedEC2.Add(ec2Spacing)))
			}
		}
	}
}

// recordNotes records the findings of a reconcile; a lasting state is recorded once.
func (k *Keeper) recordNotes(res resync.ReconcileResult, now time.Time) {
	r := &k.recon
	still := make(map[resync.Note]bool, len(res.Notes))
	for _, n := range res.Notes {
		still[n] = true
		if n.Kind.Lasting() && r.lasting[n] {
			continue
		}
		switch n.Kind {
		case resync.AddressesQuarantined, resync.ENIQuarantined:
			k.record(now, Quarantined{Note: n})
			// It is soon back or confirmed; otherwise pods might lack addresses for a minute.
			r.confirm = now.Add(resync.ConfirmAfter)
		case resync.AddressesBack, resync.ENIBack:
			k.record(now, Unquarantined{Note: n})
		default:
			k.record(now, ReconcileNote{Note: n})
		}
	}
	r.lasting = still
	if len(res.Events) > 0 {
		k.record(now, Reconciled{Changes: len(res.Events)})
	}
}

// findEnded finds allocations whose pod is gone although no DEL came.
func (k *Keeper) findEnded(v Observed, now time.Time) {
	r := &k.recon
	if v.KernelErr != nil {
		return
	}
	res := resync.Ended(resync.EndedInput{
		Now: now, Assignments: k.Assignments(), Links: v.Links, Routes: v.Routes, Absent: r.absent,
		HashOf: func(ns, name string) string { return netnames.Hash(ns, name, 0) },
	})
	r.absent = res.Absent
	if !res.Again.IsZero() {
		r.observeSoon(res.Again)
	}
	gone := slices.DeleteFunc(res.Ended, func(a ipam.Assignment) bool { return r.dropping[a.Sandbox] })
	if len(gone) == 0 {
		return
	}
	for _, a := range gone {
		r.dropping[a.Sandbox] = true
	}
	k.begin(DropTask{gone})
}

// Dropped reports ended allocations whose rules were removed: an address becomes free only
// when nothing of its last pod is left.
type Dropped struct{ Tried, Done []ipam.Assignment }

func (m Dropped) handle(k *Keeper, now time.Time) {
	for _, a := range m.Tried {
		delete(k.recon.dropping, a.Sandbox)
	}
	for _, a := range m.Done {
		if have, ok := k.book.Lookup(a.Sandbox); !ok || have.Address != a.Address || !have.AssignedAt.Equal(a.AssignedAt) {
			continue // its DEL came, or the sandbox has been assigned again
		}
		k.apply(now, ipam.Unassign{Sandbox: a.Sandbox})
		k.ledger.remove(a.Sandbox)
		k.changed()
		k.record(now, MissedDEL{Assignment: a})
	}
	k.flows.look = now
	waiting := k.awaitDrop
	k.awaitDrop = nil
	for _, r := range waiting {
		r.handle(k, now)
	}
}

// Swept reports the end of a sweep for leaked ENIs.
type Swept struct {
	Found, Deleted int
	Err            error
}

func (m Swept) handle(k *Keeper, now time.Time) {
	r := &k.recon
	r.nextSweep = resync.NextSweep(now, r.jitter(resync.SweepJitter), now)
	if m.Found > 0 {
		k.record(now, LeaksFound{ENIs: m.Found})
	}
	if m.Err != nil {
		k.record(now, SweepFailed{Err: m.Err})
	}
}
