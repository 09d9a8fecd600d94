package keeper

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Event is a change of state, or something that users should read. The set is closed.
type Event interface{ event() }

// happened makes a type an [Event].
type happened struct{}

func (happened) event() {}

// Events of requests.
type (
	AddressAssigned struct {
		happened
		ipam.Assignment
		Took time.Duration // since the ADD arrived
	}
	AddressReleased struct {
		happened
		ipam.Assignment
		Reason string // the DEL's, or ReasonTakenBack
	}
	AddFailed struct {
		happened
		Pod       ipam.Pod
		PodUID    string // from the runtime, "" if it gave none
		Cause     cause.Code
		Detail    string
		Transient bool
		Took      time.Duration
	}
	DelFailed struct {
		happened
		Pod    ipam.Pod
		Reason string // the DEL's
		Cause  cause.Code
		Detail string
		Err    error
	}
	// DelUnknown is a DEL of a sandbox that has no address.
	DelUnknown struct {
		happened
		Pod ipam.Pod
	}
	// PoolMissed is an ADD that found no free address.
	PoolMissed struct {
		happened
		Pod ipam.Pod
	}
	// MissedDEL is the end of an allocation whose pod is gone.
	MissedDEL struct {
		happened
		ipam.Assignment
	}
)

// PerENI is the card of a LimitChanged that is about each ENI's addresses.
const PerENI = -1

// Events of the pool.
type (
	// Planned is a plan that differs from the previous one.
	Planned struct {
		happened
		Plan string
	}
	ActionStarted struct {
		happened
		Operation
	}
	ActionDone struct {
		happened
		Operation
		Took   time.Duration
		Waited time.Duration // of an attach: from EC2's acceptance until the ENI could be used
	}
	ActionFailed struct {
		happened
		Operation
		Took, Waited time.Duration // as in ActionDone
		Err          error
	}
	ENIAttached struct {
		happened
		ENI   ipam.ENI
		CIDRs []netip.Prefix
	}
	ENIDetached struct {
		happened
		ID           ipam.ENIID
		Card, Device int
	}
	// ENIUnmanaged is an attached ENI that the daemon may not use, recorded once.
	ENIUnmanaged struct {
		happened
		resync.Other
	}
	// ENIVanished is an ENI that something else deleted.
	ENIVanished struct {
		happened
		ENI ipam.ENIID
		Err error
	}
	CIDRsAdded struct {
		happened
		ENI   ipam.ENIID
		CIDRs []netip.Prefix
	}
	CIDRsRemoved struct {
		happened
		ENI   ipam.ENIID
		CIDRs []netip.Prefix
	}
	BackoffStarted struct {
		happened
		Backoff
	}
	BackoffEnded struct {
		happened
		Backoff
	}
	// LimitChanged is a limit that EC2 stated, or no longer states, or states differently.
	LimitChanged struct {
		happened
		Card    int // PerENI: secondary IPs or prefixes of an ENI
		Was, Is warmpool.Stated
		Err     error // EC2's refusal, if one led to this
	}
	// SubnetShort is EC2's refusal to assign addresses because the subnet has too few.
	SubnetShort struct {
		happened
		Subnet string
		ENI    ipam.ENIID
		Err    error
	}
	// SubnetFull is a subnet that is not asked for addresses because it has too few.
	SubnetFull struct {
		happened
		Subnet string
		Detail string
	}
	// SubnetsListed has the subnets that new ENIs may use.
	SubnetsListed struct {
		happened
		Subnets []resync.Subnet
	}
	SubnetsFailed struct {
		happened
		Err error
	}
	// BookRefused is a bug: the book rejected an event that contradicts it.
	BookRefused struct {
		happened
		Event       ipam.Event
		ByReconcile bool
		Err         error
	}
	CheckpointFailed struct {
		happened
		Err error
	}
	CheckpointRecovered struct{ happened }
	// FlowsDeleted is a pass over the kernel's connection tracking.
	FlowsDeleted struct {
		happened
		Addresses int // whose entries were deleted; 0 at a start: of all without a pod
		Entries   int
		Took      time.Duration
	}
	// FlowsKept is such a pass that failed: its addresses are used again after their cooldown
	// all the same.
	FlowsKept struct {
		happened
		Entries int // deleted all the same
		Err     error
		Again   bool // the pass before failed as well
	}
	Terminating struct{ happened }
)

// Events of the node and of its comparison with the outside.
type (
	SchedulingChanged struct {
		happened
		Cordoned bool
	}
	// TargetsChanged is a change of the Node's labels.
	TargetsChanged struct {
		happened
		Was, Is Targets
	}
	MaxPodsChanged struct {
		happened
		MaxPods int
		Source  string
	}
	VPCCIDRsChanged struct {
		happened
		CIDRs []netip.Prefix
	}
	Quarantined struct {
		happened
		resync.Note
	}
	Unquarantined struct {
		happened
		resync.Note
	}
	ReconcileNote struct {
		happened
		resync.Note
	}
	Reconciled struct {
		happened
		Changes int
	}
	ReconcileFailed struct {
		happened
		Err error
	}
	// LeaksFound counts ENIs; each is deleted.
	LeaksFound struct {
		happened
		ENIs int
	}
	SweepFailed struct {
		happened
		Err error
	}
)

// Events of optional modes.
type (
	ENIConfigUsed struct {
		happened
		Name, Subnet string
	}
	ENIConfigFailed struct {
		happened
		Name string
		Err  error
	}
	GroupsChanged struct {
		happened
		Groups int
	}
	GroupsWritten struct {
		happened
		ENIs int
	}
	GroupsFailed struct {
		happened
		ENI ipam.ENIID
		Err error
	}
	// ENIMayOutlive is a refused delete-on-termination.
	ENIMayOutlive struct {
		happened
		ENI   ipam.ENIID
		Err   error
		Again bool // for the same cause as before
	}
	// PodsExpected counts pods that are bound to the node and have asked for no address yet.
	PodsExpected struct {
		happened
		Pods int
	}
	TrunkFound struct {
		happened
		ENI ipam.ENI
	}
	TrunkLost struct {
		happened
		ENI ipam.ENIID
	}
	// TrunkGivenUp is the end of a trunk's reservation.
	TrunkGivenUp struct {
		happened
		Why string
	}
)

// Noted is something that a task did or, with an error, survived. It is a message, which the
// Keeper passes on as an event.
type Noted struct {
	happened
	What Note
	ENI  ipam.ENIID
	Err  error
}

func (m Noted) handle(k *Keeper, now time.Time) { k.record(now, m) }

func (k *Keeper) record(at time.Time, e Event) { k.out.Record(at, e) }
