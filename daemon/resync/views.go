package resync

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
)

// Knowledge says what a view is worth.
type Knowledge uint8

// The states of a view. Only a known one says anything by what it lacks.
const (
	NotAsked Knowledge = iota
	Failed             // asked, no answer: nothing follows from it
	Known
)

// EC2View is what EC2 lists as attached to the instance.
type EC2View struct {
	State Knowledge
	At    time.Time // when the reading began
	ENIs  []ENI
}

// MetadataView is what the instance metadata lists. It lags behind EC2 in both
// directions, so it only gives reason to ask EC2.
type MetadataView struct {
	State      Knowledge
	At         time.Time // when the reading began
	Interfaces []Interface
}

// KernelView is what the node's kernel has. Its routes must be read after the other
// views, so that a pod that came meanwhile is seen.
type KernelView struct {
	State  Knowledge
	Routes []PodRoute
}

// Slot is a device index of a network card.
type Slot struct{ Card, Device int }

// Busy is what operations of this process were at work on at any time since the views
// were begun to be read. It is left alone: the operations know better.
type Busy struct {
	ENIs  []ipam.ENIID
	CIDRs []netip.Prefix
	Slots []Slot // of attachments whose ENI has no id yet
}

// Release is a CIDR that this process gave back to EC2.
type Release struct {
	CIDR netip.Prefix
	At   time.Time // when EC2 answered
}

// Other is an attached ENI outside of the book. It occupies its slot.
type Other struct {
	ID           ipam.ENIID
	Card, Device int
	Why          string
}

// ReconcilePolicy is what decides which ENIs and addresses pods may use.
type ReconcilePolicy struct {
	InstanceID     string
	PrimaryENI     ipam.ENIID
	ManageUntagged bool // MANAGE_UNTAGGED_ENI
	MultiNIC       bool // ENABLE_MULTI_NIC
	IPv6           bool // pods have IPv6 addresses, of /80s, and no others
	Subnets        SubnetPolicy
	// EC2Every is after how long EC2 is asked though nothing is suspicious: it alone
	// shows changed tags. Zero: never for that.
	EC2Every time.Duration
	// OrphanAge is [OrphanAge] or less, below the time that an address rests; zero:
	// OrphanAge.
	OrphanAge time.Duration
}

const (
	// ReleaseRest is how long EC2 may go on to show a CIDR that was given back
	// (spec/ipamd.md §5.3).
	ReleaseRest = time.Minute
	// ConfirmAfter is how much later EC2 must still not show a CIDR or ENI before it
	// is removed: what was just assigned is missing in its lists for a moment.
	ConfirmAfter = 30 * time.Second
	// DisputeAfter is the same for what the instance metadata still shows.
	DisputeAfter = 5 * time.Minute
	// attachRest is how long after its attachment an ENI may be missing in lists.
	attachRest = time.Minute
	// OrphanAge is how long after the end of an allocation its route may be left
	// before it means that a pod lives there.
	OrphanAge = 10 * time.Second
)

// ReconcileInput is all that a reconcile looks at.
type ReconcileInput struct {
	Now      time.Time
	Book     ipam.Snapshot
	Policy   ReconcilePolicy
	EC2      EC2View
	Metadata MetadataView
	Kernel   KernelView
	Subnets  []Subnet // nil: not known
	Busy     Busy
	Released []Release
	Others   []Other   // ReconcileResult.Others of the last time that EC2 was known
	LastEC2  time.Time // when EC2 answered the last time; zero: never
}

// ReconcileResult is what follows from the views.
type ReconcileResult struct {
	// Events are to be applied in this order; a book that is as in the input takes
	// them all.
	Events []ipam.Event
	Notes  []Note
	// NeedEC2 asks for a reconcile with a new view of EC2: this one is not conclusive.
	NeedEC2 bool
	// Forget lists releases that need no longer be remembered.
	Forget []netip.Prefix

	// The rest follows from EC2's view and is empty without it.

	Settled bool       // EC2's view was known and made sense
	SetUp   []Attached // managed and attached, not in the book: for AttachENI once their routes stand
	Ending  []Attached // at a start: managed ENIs that an earlier process was detaching
	Gone    []ipam.ENI // removed from the book because EC2 shows them no more: their rules go
	Others  []Other    // ordered by card, device, id; ENIs to set up are not among them
	// EFAOnlyCards are network cards beyond the first on which an efa-only ENI is and
	// no managed one (spec/ipamd.md §5.4), in order.
	EFAOnlyCards []int
	// CutOff counts assignments whose address EC2 does not show on their ENI.
	CutOff int
}

// NoteKind is the kind of a note. Its text is stable.
type NoteKind string

// Notes of changes: an event goes with each.
const (
	AddressesAdded       NoteKind = "addresses-added"
	AddressesRemoved     NoteKind = "addresses-removed"
	AddressesQuarantined NoteKind = "addresses-quarantined"
	AddressesBack        NoteKind = "addresses-back"
	ENIRemoved           NoteKind = "eni-removed"
	ENIQuarantined       NoteKind = "eni-quarantined"
	ENIBack              NoteKind = "eni-back"
	ENIExcluded          NoteKind = "eni-excluded"
	ENIIncluded          NoteKind = "eni-included"
	PodRecovered         NoteKind = "pod-recovered"
)

// Notes of a state: they come again with every reconcile while it lasts.
const (
	ENIFound         NoteKind = "eni-found" // to be set up
	AddressesResting NoteKind = "addresses-resting"
	AddressConflict  NoteKind = "address-conflict"
	PodsCutOff       NoteKind = "pods-cut-off"
	MetadataDiffers  NoteKind = "metadata-differs"
	MetadataUnknown  NoteKind = "metadata-unknown"
	EC2Unknown       NoteKind = "ec2-unknown"
	KernelUnknown    NoteKind = "kernel-unknown"
)

// Lasting reports whether the kind is of a state, not of a change: it need not be reported
// again while it lasts.
func (k NoteKind) Lasting() bool {
	switch k {
	case ENIFound, AddressesResting, AddressConflict, PodsCutOff, MetadataDiffers, MetadataUnknown, EC2Unknown, KernelUnknown:
		return true
	}
	return false
}

// Note says what was found, for people. It is comparable, for the sake of those that last.
type Note struct {
	Kind NoteKind
	ENI  ipam.ENIID   // "": none in particular
	CIDR netip.Prefix // the first of Count; zero: none
	// Count is the number of CIDRs, or of pods where the kind is about pods.
	Count int
	Text  string // why
}
