package keeper

import (
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// State is a snapshot of everything at one moment. It is immutable.
type State struct {
	Now           time.Time
	Book          ipam.Snapshot
	Policy        warmpool.Policy
	Limits        warmpool.Limits       // lowered to those stated
	Stated        warmpool.StatedLimits // why they are lower than the instance type's
	OtherENIs     []int                 // per card
	Waiting       int                   // ADDs waiting for the pool
	WaitingSince  time.Time             // arrival of the oldest one; zero if none waits
	Operations    []Operation
	Backoffs      []Backoff
	Subnets       []resync.Subnet // that new ENIs may use, the one with the most free addresses first
	SubnetsRead   time.Time       // zero if never
	Terminating   bool
	Unschedulable bool
	NodeKnown     bool // the Node object has been read
	MaxPodsSource string
	Reconciled    time.Time // last comparison of the pool with what is attached
	NextReconcile time.Time
	NextSweep     time.Time // zero if there are no sweeps
}

// Backoff is a running clock.
type Backoff struct {
	Scope string // attach, release, eni, subnet, subnet-prefix
	ID    string // of the ENI or subnet
	Until time.Time
	Cause cause.Code
}

// State returns a snapshot of everything.
func (k *Keeper) State(now time.Time) State {
	s := State{
		Now: now, Book: k.book.Snapshot(), Policy: k.effective(now), Limits: k.lowered(), Stated: k.stated,
		Waiting: len(k.waiting), Backoffs: k.backoffs(now), SubnetsRead: k.subnets.read,
		Terminating: k.terminating, Unschedulable: k.unschedulable, NodeKnown: k.nodeKnown, MaxPodsSource: k.maxPodsSource,
		Reconciled: k.recon.compared, NextReconcile: k.recon.nextRead, NextSweep: k.recon.nextSweep,
	}
	s.OtherENIs, _ = k.recon.slots(len(k.limits.ENIsByCard))
	if len(k.waiting) > 0 {
		s.WaitingSince = k.waiting[0].Arrived
	}
	for _, op := range k.inFlight() {
		s.Operations = append(s.Operations, *op)
	}
	if k.subnets.known() {
		s.Subnets = k.settings.Subnets.Candidates(k.subnets.all)
		for i := range s.Subnets {
			if sn := &s.Subnets[i]; sn.AvailableIPs == resync.Unknown {
				sn.CIDR = k.subnetCIDR(sn.ID)
			}
		}
	}
	return s
}

// Pool returns the planner's current input, for planning with other targets.
func (k *Keeper) Pool(now time.Time) (warmpool.Snapshot, warmpool.Policy) {
	return k.snapshot(now), k.effective(now)
}

// Waiting counts the ADDs that are waiting for the pool.
func (k *Keeper) Waiting() int { return len(k.waiting) }

func (k *Keeper) backoffs(now time.Time) []Backoff {
	var out []Backoff
	add := func(scope, id string, c BackoffTimer) {
		if c.Running(now) {
			out = append(out, Backoff{scope, id, c.Until, c.Cause})
		}
	}
	add("attach", "", k.backoff.attach)
	if best := k.subnets.best(k.settings.Subnets); !until(k.backoff.subnet, best).After(now) {
		add("subnet", best, k.subnets.low)
	}
	add("release", "", k.backoff.release)
	for _, id := range slices.Sorted(maps.Keys(k.backoff.eni)) {
		add("eni", string(id), *k.backoff.eni[id])
	}
	for _, id := range slices.Sorted(maps.Keys(k.backoff.subnet)) {
		add("subnet", id, *k.backoff.subnet[id])
	}
	for _, id := range slices.Sorted(maps.Keys(k.backoff.subnetPrefixes)) {
		add("subnet-prefix", id, *k.backoff.subnetPrefixes[id])
	}
	return out
}
