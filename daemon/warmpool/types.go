package warmpool

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// Policy is what the operator asked for and the timers of the compat spec.
type Policy struct {
	PrefixDelegation bool // pools hold /28s instead of secondary IPs, on every card
	IPv6             bool // pools hold one /80 per ENI; all targets are ignored
	CustomNetworking bool // the primary ENI gives no addresses to pods
	MultiNIC         bool // cards > 0 have pools of their own (W = M = 1)
	ReserveTrunkSlot bool // keep one slot of card 0 free for a trunk ENI that is not attached yet

	WarmENI    int // WARM_ENI_TARGET, default 1
	WarmIP     int // WARM_IP_TARGET, 0 = not set
	MinIP      int // MINIMUM_IP_TARGET, 0 = not set
	WarmPrefix int // WARM_PREFIX_TARGET
	MaxENI     int // MAX_ENI, 0 = not set; per network card
	MaxPods    int // kubelet's max-pods; growth stops at as many usable addresses; 0 = not known, no stop

	// ManageUnschedulable lets the pool follow its targets on a cordoned node too
	// (AWS_MANAGE_ENIS_NON_SCHEDULABLE). Without it a cordoned node grows for
	// pods that wait or are expected only and never shrinks.
	ManageUnschedulable bool

	Cooldown          time.Duration // IP_COOLDOWN_PERIOD, default 30 s
	ScaleDownInterval time.Duration // at least this long between two shrink plans, default 30 s
	ENIMinAge         time.Duration // an ENI younger than this is not detached, default 60 s
	SubnetRefresh     time.Duration // how old Subnet.AvailableIPs may get: plan again then when it was too low; 0 reads as 60 s
}

// Limits are the facts of the instance type.
type Limits struct {
	IPv4PerENI int   // addresses per ENI, the primary included
	ENIsByCard []int // attachable ENIs per network card, indexed by card
}

// Snapshot is the state of the node at one moment.
type Snapshot struct {
	Book    ipam.Snapshot
	Limits  Limits
	Subnets []Subnet // subnets a new ENI may use, any order; empty = not known yet

	// NoUsableSubnet: the subnets are known and every one is excluded or untagged,
	// so that no ENI can be created.
	NoUsableSubnet bool

	// OtherENIs counts attached ENIs that the book does not hold, per card:
	// unmanaged, EFA-only, detaching. They occupy slots.
	OtherENIs []int

	// OtherDevices lists, per card, the device indexes those ENIs use. An index
	// missing here may be planned for a new ENI.
	OtherDevices [][]int

	// Misplaced counts, per ENI, the CIDRs that EC2 shows on it and that the book cannot
	// take because it has them on another ENI, where pods may still live. They occupy slots.
	Misplaced map[ipam.ENIID]int

	// Unmanaged marks cards that get no pool: their only ENI is EFA-only. Shorter
	// than the card list = managed.
	Unmanaged []bool

	// Waiting counts ADDs that found the pool dry, per card.
	Waiting []int

	// Expected counts pods that are bound to the node and have not asked for an address
	// yet, per card: addresses for them are wanted now, but no ADD waits. Those that
	// max-pods has no room for do not count. nil: not known, then the planner judges by
	// the ADDs of the last seconds whether more will follow.
	Expected []int

	// Pending lists operations in flight. Their slots, addresses and CIDRs are
	// spoken for.
	Pending []Pending

	// ENIBackoff says, per ENI, until when no address may be asked for on it, and
	// why (its subnet is exhausted or fragmented, or the API throttles).
	ENIBackoff map[ipam.ENIID]time.Time
	// ENIBackoffCause says why, for [Blocked]; a missing entry reads as EC2Error.
	ENIBackoffCause map[ipam.ENIID]cause.Code
	// AttachBackoff: no ENI is created or attached before this time (throttling,
	// attach limit). Zero: none.
	AttachBackoff time.Time
	// AttachBackoffCause says why, for [Blocked]; "" reads as EC2Error.
	AttachBackoffCause cause.Code
	// ReleaseBackoff: no address is released and no ENI detached before this.
	ReleaseBackoff time.Time

	// Throttled: EC2 refuses requests of this account for being too many. The pool grows
	// for the pods that come and does nothing ahead of them.
	Throttled bool

	LastScaleDown time.Time
	Terminating   bool
	Unschedulable bool // the node is cordoned
}

// Subnet is a subnet that new ENIs may be created in.
type Subnet struct {
	ID            string
	AvailableIPs  int       // free addresses as last seen in EC2; −1 = not known
	BackoffUntil  time.Time // no address is asked for here, on new ENIs or old ones, before this time (exhausted)
	PrefixBackoff time.Time // no /28 is asked for here before this time (fragmented); secondary IPs may be
}

// PendingKind says what an operation in flight will do.
type PendingKind uint8

const (
	PendingAttach  PendingKind = iota // a new ENI: Card, Device, IPs or Prefixes, SubnetID
	PendingAssign                     // IPs or Prefixes on ENI
	PendingRelease                    // CIDRs of ENI (held in the book)
	PendingDetach                     // ENI (held in the book)
)

// Pending is one operation in flight.
type Pending struct {
	Kind     PendingKind
	ENI      ipam.ENIID // "" for PendingAttach
	Card     int
	Device   int
	IPs      int
	Prefixes int
	SubnetID string // of a PendingAttach or PendingAssign; "" = not known, it bounds nothing
	Late     bool   // it takes longer than it should: its slot is taken, its addresses are not counted on
}

// Action is one thing to do. The set is closed.
type Action interface{ Why() Reason }

type (
	// AttachENI creates an ENI with that many secondary IPs or prefixes already on
	// it and attaches it at a device index that no other ENI or plan uses.
	AttachENI struct {
		Card     int
		Device   int
		SubnetID string // "" = the node's own (or the ENIConfig's) subnet
		IPs      int
		Prefixes int
		Reason   Reason
	}
	// AssignAddresses asks EC2 for secondary IPs on an attached ENI.
	AssignAddresses struct {
		ENI    ipam.ENIID
		Count  int
		Reason Reason
	}
	// AssignPrefixes asks EC2 for /28s, or in an IPv6 cluster for one /80, on an
	// attached ENI.
	AssignPrefixes struct {
		ENI    ipam.ENIID
		Count  int
		Reason Reason
	}
	// UnassignAddresses returns secondary IPs (all /32) to EC2.
	UnassignAddresses struct {
		ENI    ipam.ENIID
		CIDRs  []netip.Prefix
		Reason Reason
	}
	// UnassignPrefixes returns /28s to EC2.
	UnassignPrefixes struct {
		ENI    ipam.ENIID
		CIDRs  []netip.Prefix
		Reason Reason
	}
	// DetachENI detaches and deletes an ENI on which no address is assigned or cooling.
	DetachENI struct {
		ENI    ipam.ENIID
		Reason Reason
	}
	// Wait says that something is wanted or will become possible at a known time:
	// plan again then. At most one per plan, with the earliest time.
	Wait struct {
		Until  time.Time
		Reason Reason
	}
)

func (a AttachENI) Why() Reason         { return a.Reason }
func (a AssignAddresses) Why() Reason   { return a.Reason }
func (a AssignPrefixes) Why() Reason    { return a.Reason }
func (a UnassignAddresses) Why() Reason { return a.Reason }
func (a UnassignPrefixes) Why() Reason  { return a.Reason }
func (a DetachENI) Why() Reason         { return a.Reason }
func (a Wait) Why() Reason              { return a.Reason }
