package keeper

import (
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// Times of waiting for a trunk ENI, which the VPC resource controller attaches on request.
// The metadata shows it seconds before or after EC2 does.
const (
	// trunkPoll is how often the metadata is read while the trunk is awaited; upstream does
	// so forever.
	trunkPoll = 5 * time.Second
	// trunkFastPoll is how long that lasts after a reason to expect the trunk.
	trunkFastPoll = 5 * time.Minute
	// trunkPatience is how long a slot is kept for a trunk that does not come: without a limit,
	// nodes of types that the controller does not know would lack an ENI forever.
	trunkPatience = 15 * time.Minute
)

// trunkWait is the state of the node's trunk ENI.
type trunkWait struct {
	eni     ipam.ENIID // "" if none is attached
	hinted  time.Time  // the last reason to expect it
	shown   bool       // the controller reported it attached; repeated reports do not count
	givenUp bool
	refused bool // the controller reports that there will be none
}

// Trunk returns the node's trunk ENI; false if there is none.
func (k *Keeper) Trunk() (ipam.ENIState, bool) {
	for _, e := range k.book.Snapshot().ENIs {
		if e.Trunk && !e.Quarantined() {
			return e, true
		}
	}
	return ipam.ENIState{}, false
}

// TrunkWanted reports whether the node wants a trunk, and whether it has one or a slot for it.
func (k *Keeper) TrunkWanted() (wanted, slot bool) {
	if !k.settings.Trunk {
		return false, false
	}
	if _, there := k.Trunk(); there {
		return true, true
	}
	most := k.lowered().ENIsByCard[0]
	if k.policy.MaxENI > 0 {
		most = min(most, k.policy.MaxENI)
	}
	others, _ := k.recon.slots(1)
	attached := others[0]
	for _, e := range k.book.Snapshot().ENIs {
		if e.Card == 0 {
			attached++
		}
	}
	for _, op := range k.ops {
		if op.ENI == "" && op.Card == 0 {
			attached++ // it is an attach
		}
	}
	return true, attached < most
}

// reservesTrunkSlot reports whether a slot of card 0 is kept free for the trunk.
func (k *Keeper) reservesTrunkSlot() bool { return k.settings.Trunk && !k.trunk.givenUp }

// awaitsTrunk reports whether the trunk is expected soon.
func (k *Keeper) awaitsTrunk(now time.Time) bool {
	return k.settings.Trunk && k.trunk.eni == "" && !k.trunk.refused && now.Sub(k.trunk.hinted) < trunkFastPoll
}

// TrunkHinted is a reason to expect the trunk: it was requested from the controller (Attached
// is false), or the controller reports it. The controller repeats its report with every change
// of the objects that it writes, so only the first one counts: otherwise the daemon would read
// at short intervals forever for a trunk that does not appear.
type TrunkHinted struct{ Attached bool }

func (m TrunkHinted) handle(k *Keeper, now time.Time) {
	t := &k.trunk
	if !k.settings.Trunk || t.eni != "" {
		return
	}
	if m.Attached && t.shown || t.refused && !m.Attached {
		return
	}
	t.hinted, t.shown, t.givenUp, t.refused = now, m.Attached, false, false
	if m.Attached {
		k.recon.needEC2, k.recon.earlyEC2 = true, later(now, k.recon.askedEC2.Add(trunkPoll))
		k.recon.observeSoon(k.recon.earlyEC2)
	}
	k.recon.observeBy(now.Add(trunkPoll))
}

// TrunkRefused reports whether the controller says that the node cannot have a trunk: then the
// slot need not be kept.
type TrunkRefused struct{ Refused bool }

func (m TrunkRefused) handle(k *Keeper, now time.Time) {
	t := &k.trunk
	if !k.settings.Trunk || t.refused == m.Refused {
		return
	}
	t.refused = m.Refused
	switch {
	case !m.Refused:
		t.hinted, t.givenUp = now, false
	case t.eni == "" && !t.givenUp:
		t.givenUp = true
		k.record(now, TrunkGivenUp{Why: "the VPC resource controller reports that this node cannot have a trunk ENI: its slot is used for pods"})
	}
}

// awaitTrunk updates the state of the trunk.
func (k *Keeper) awaitTrunk(now time.Time) {
	t := &k.trunk
	if !k.settings.Trunk {
		return
	}
	if t.hinted.IsZero() {
		t.hinted = k.started
	}
	e, there := k.Trunk()
	switch {
	case there && t.eni != e.ID:
		t.eni, t.givenUp = e.ID, false
		k.record(now, TrunkFound{ENI: e.ENI})
	case !there && t.eni != "":
		k.record(now, TrunkLost{ENI: t.eni})
		t.eni, t.hinted, t.shown = "", now, false
	case !there && !t.givenUp && now.Sub(t.hinted) >= trunkPatience:
		t.givenUp = true
		k.record(now, TrunkGivenUp{Why: "no trunk ENI was attached within " + trunkPatience.String() + ": its slot is used for pods"})
	}
}

// BranchFailed is the failed ADD of a pod for a reason outside the pool: the pod has a branch
// ENI, its object could not be read or written, or the network policy agent did not accept it.
type BranchFailed struct {
	Pod    ipam.Pod
	PodUID string // see [AddFailed]
	Cause  cause.Code
	Text   string
	Took   time.Duration
}

func (m BranchFailed) handle(k *Keeper, now time.Time) {
	k.record(now, AddFailed{Pod: m.Pod, PodUID: m.PodUID, Cause: m.Cause, Detail: m.Text, Took: m.Took, Transient: TransientCause(m.Cause)})
}

// LocalCIDRs are the destinations to which traffic keeps the pod's own address.
func (k *Keeper) LocalCIDRs() []string {
	reply := k.addReply(nil)
	if k.settings.IPv6 {
		return reply.VPCv6CIDRs
	}
	return reply.VPCv4CIDRs
}
