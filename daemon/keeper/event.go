package keeper

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/procedure"
	"cnictl/daemon/warmpool"
)

// Kind says what an Event tells. Its text is stable: it is told to the outside.
type Kind string

// Kinds of events.
const (
	AddressAssigned  Kind = "address-assigned"
	AddressReleased  Kind = "address-released"
	AddFailed        Kind = "add-failed"
	DelFailed        Kind = "del-failed"
	DelUnknown       Kind = "del-unknown" // a DEL of a sandbox that has no address
	PoolMissed       Kind = "pool-missed" // an ADD found no free address and is waiting
	ActionStarted    Kind = "action-started"
	ActionDone       Kind = "action-done"
	ActionFailed     Kind = "action-failed"
	ENIAttached      Kind = "eni-attached"
	ENIDetached      Kind = "eni-detached"
	ENIUnmanaged     Kind = "eni-unmanaged" // attached, and not the daemon's to use; told once
	ENIVanished      Kind = "eni-vanished"  // deleted by somebody else
	CIDRsAdded       Kind = "cidrs-added"
	CIDRsRemoved     Kind = "cidrs-removed"
	BackoffStarted   Kind = "backoff-started"
	BackoffEnded     Kind = "backoff-ended"
	SubnetShort      Kind = "subnet-short"
	SubnetsListed    Kind = "subnets-read"
	SubnetsFailed    Kind = "subnets-failed"
	NodeChanged      Kind = "node-changed"
	VPCCIDRsChanged  Kind = "vpc-cidrs-changed"
	Quarantined      Kind = "quarantined"
	Unquarantined    Kind = "unquarantined"
	ReconcileNote    Kind = "reconcile-note"
	Reconciled       Kind = "reconciled"
	ReconcileFailed  Kind = "reconcile-failed"
	MissedDEL        Kind = "missed-del"
	LeaksFound       Kind = "leaks-found" // Count of them; each is deleted
	LeakDeleted      Kind = "leak-deleted"
	SweepFailed      Kind = "sweep-failed"
	CheckpointFailed Kind = "checkpoint-failed"
	CheckpointMended Kind = "checkpoint-recovered"
	Planned          Kind = "planned"
	BookRefused      Kind = "book-refused" // a bug: the book contradicts an event
	Warned           Kind = "warned"       // a task survived something
	Told             Kind = "told"         // a task did something
	Terminating      Kind = "terminating"
	ENIConfigUsed    Kind = "eniconfig-used"   // Text: its name
	ENIConfigFailed  Kind = "eniconfig-failed" // Text: its name
	GroupsChanged    Kind = "security-groups-changed"
	GroupsWritten    Kind = "security-groups-written"
	GroupsFailed     Kind = "security-groups-failed"
	PodsExpected     Kind = "pods-expected" // Count: bound to the node, no address asked for yet
	TrunkFound       Kind = "trunk-found"
	TrunkLost        Kind = "trunk-lost"
	TrunkGivenUp     Kind = "trunk-given-up" // its slot is not reserved any more; Text: why
)

// Texts of NodeChanged.
const (
	Cordoned       = "cordoned"
	MaxPodsChanged = "max-pods" // Count: the new value
)

// Event is one change of state, or one thing that people should read. Members that do
// not apply are zero.
type Event struct {
	Kind         Kind
	At           time.Time
	Pod          ipam.Pod
	PodUID       string // of AddFailed: as the runtime gave it, "" where it did not
	Address      netip.Addr
	ENI          ipam.ENIID
	Card, Device int
	Subnet       string
	CIDRs        []netip.Prefix
	IPs          int
	Prefixes     int
	Op           OpID                 // of action events
	Action       warmpool.PendingKind // of action events
	Cause        cause.Code
	Reason       string // the planner's, or the DEL's; of BookRefused: ByReconcile or ""
	Text         string
	Transient    bool
	Count        int
	Err          error
	Took         time.Duration
	Waited       time.Duration // of an attach: since EC2 took it, until the ENI could be used
}

// Note is something that a task tells people: with an error it survived it, without one
// it did it.
type Note struct {
	Text string
	ENI  ipam.ENIID
	Err  error
}

func (m Note) handle(k *Keeper, now time.Time) {
	kind, why := Told, cause.Code("")
	switch {
	case m.Err != nil:
		kind, why = Warned, procedure.CauseOf(m.Err)
	case m.Text == procedure.LeakDeleted:
		kind = LeakDeleted
	}
	k.record(Event{Kind: kind, At: now, ENI: m.ENI, Text: m.Text, Cause: why, Err: m.Err})
}

// record tells an event.
func (k *Keeper) record(e Event) { k.out.Record(e) }
