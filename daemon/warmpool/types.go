package warmpool

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// Policy holds the operator's settings and the timers of the compat spec.
type Policy struct {
	PrefixDelegation bool // pools hold /28s instead of secondary IPs, on every card
	IPv6             bool // pools hold one /80 per ENI; all targets are ignored
	CustomNetworking bool // the primary ENI gives no addresses to pods
	MultiNIC         bool // cards > 0 have their own pools (W = M = 1)
	ReserveTrunkSlot bool // keep one slot of card 0 free for a trunk ENI that is not attached yet

	WarmENI    int // WARM_ENI_TARGET, default 1
	WarmIP     int // WARM_IP_TARGET, 0 = not set
	MinIP      int // MINIMUM_IP_TARGET, 0 = not set
	WarmPrefix int // WARM_PREFIX_TARGET
	MaxENI     int // MAX_ENI, 0 = not set; per network card
	MaxPods    int // kubelet's max-pods; growth stops at that many usable addresses; 0 = unknown, no stop

	// ManageUnschedulable makes the pool follow its targets on a cordoned node, too
	// (AWS_MANAGE_ENIS_NON_SCHEDULABLE). Without it a cordoned node grows only for waiting or
	// expected pods and never shrinks.
	ManageUnschedulable bool

	Cooldown          time.Duration // IP_COOLDOWN_PERIOD, default 30 s
	ScaleDownInterval time.Duration // minimum time between two shrink plans, default 30 s
	ENIMinAge         time.Duration // an ENI younger than this is not detached, default 60 s
	SubnetRefresh     time.Duration // delay before planning again if Subnet.AvailableIPs was too low; 0 means 60 s
}

// Limits are the limits of the instance type, or lower ones that EC2 stated.
type Limits struct {
	IPv4PerENI int   // addresses per ENI, including the primary one
	ENIsByCard []int // attachable ENIs per network card, indexed by card
}

// Snapshot is the state of the node at one moment.
type Snapshot struct {
	Book    ipam.Snapshot
	Limits  Limits       // lowered to those stated
	Stated  StatedLimits // why they are lower than the instance type's
	Subnets []Subnet     // subnets that a new ENI may use, in any order; empty = not known yet

	// NoUsableSubnet: the subnets are known and all are excluded or untagged, so no ENI can be
	// created.
	NoUsableSubnet bool

	// OtherENIs counts attached ENIs that are not in the book, per card: unmanaged, EFA-only,
	// detaching. They occupy slots.
	OtherENIs []int

	// OtherDevices lists, per card, the device indexes of those ENIs. An index missing here may be
	// planned for a new ENI.
	OtherDevices [][]int

	// Misplaced counts, per ENI, the CIDRs that EC2 shows on it but the book cannot accept
	// because it has them on another ENI, where pods may still use them. They occupy slots.
	Misplaced map[ipam.ENIID]int

	// Unmanaged marks cards that get no pool: their only ENI is EFA-only. Cards beyond the end
	// of the list are managed.
	Unmanaged []bool

	// Waiting counts ADDs that found the pool dry, per card.
	Waiting []int

	// Expected counts pods that are bound to the node and have not asked for an address yet, per
	// card: they need addresses now, but no ADD is waiting. Pods beyond max-pods do not count. If
	// it is nil (unknown), the planner estimates from the ADDs of the last seconds whether more
	// will follow.
	Expected []int

	// Pending lists operations in flight. Their slots, addresses and CIDRs are reserved.
	Pending []Pending

	// ENIBackoff is, per ENI, the time before which no address may be requested on it (its
	// subnet is exhausted or fragmented, or the API throttles).
	ENIBackoff map[ipam.ENIID]time.Time
	// ENIBackoffCause is the reason, for [Blocked]; a missing entry means EC2Error.
	ENIBackoffCause map[ipam.ENIID]cause.Code
	// AttachBackoff is the time before which no ENI is created or attached (throttling, attach
	// limit); zero if none.
	AttachBackoff time.Time
	// AttachBackoffCause is the reason, for [Blocked]; "" means EC2Error.
	AttachBackoffCause cause.Code
	// ReleaseBackoff is the time before which no address is released and no ENI detached.
	ReleaseBackoff time.Time

	// Throttled: EC2 refuses requests because this account makes too many. The pool grows for
	// arriving pods and does nothing ahead of demand.
	Throttled bool

	LastScaleDown time.Time
	Terminating   bool
	Unschedulable bool // the node is cordoned
}

// Subnet is a subnet that new ENIs may be created in.
type Subnet struct {
	ID            string
	AvailableIPs  int       // free addresses as last seen in EC2; −1 = unknown
	BackoffUntil  time.Time // no address is requested here before this time, on new or existing ENIs (exhausted)
	PrefixBackoff time.Time // no /28 is requested here before this time (fragmented); secondary IPs may be
}

// PendingKind is the kind of an operation in flight.
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
	SubnetID string // of a PendingAttach or PendingAssign; "" = unknown, no bound
	Late     bool   // it takes longer than it should: its slot is taken, but its addresses are not counted on
}

// Action is one thing to do. The set is closed.
type Action interface{ Why() Reason }

type (
	// AttachENI creates an ENI that already has that many secondary IPs or prefixes, and
	// attaches it at a device index that no other ENI or plan uses.
	AttachENI struct {
		Card     int
		Device   int
		SubnetID string // "" = the node's own (or the ENIConfig's) subnet
		IPs      int
		Prefixes int
		Reason   Reason
	}
	// AssignAddresses requests secondary IPs for an attached ENI from EC2.
	AssignAddresses struct {
		ENI    ipam.ENIID
		Count  int
		Reason Reason
	}
	// AssignPrefixes requests /28s, or in an IPv6 cluster one /80, for an attached ENI from EC2.
	AssignPrefixes struct {
		ENI    ipam.ENIID
		Count  int
		Reason Reason
	}
	// UnassignAddresses releases secondary IPs (all /32) to EC2.
	UnassignAddresses struct {
		ENI    ipam.ENIID
		CIDRs  []netip.Prefix
		Reason Reason
	}
	// UnassignPrefixes releases /28s to EC2.
	UnassignPrefixes struct {
		ENI    ipam.ENIID
		CIDRs  []netip.Prefix
		Reason Reason
	}
	// DetachENI detaches and deletes an ENI on which no address is assigned or in cooldown.
	DetachENI struct {
		ENI    ipam.ENIID
		Reason Reason
	}
	// Wait asks for another plan at the given time, when something that is wanted becomes
	// possible. A plan has at most one, with the earliest time.
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
