package resync

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
)

// Knowledge is the state of a view.
type Knowledge uint8

// The states of a view. Only in a known view does a missing item mean anything.
const (
	NotAsked Knowledge = iota
	Failed             // asked without an answer: nothing follows from it
	Known
)

// EC2View is what EC2 lists as attached to the instance.
type EC2View struct {
	State Knowledge
	At    time.Time // when the read began
	ENIs  []ENI
}

// MetadataView is what the instance metadata lists. It lags behind EC2 in both directions, so
// it is only a reason to ask EC2.
type MetadataView struct {
	State      Knowledge
	At         time.Time // when the read began
	Interfaces []Interface
}

// KernelView is the state of the node's kernel. Its routes must be read after the other views,
// so that pods that arrived meanwhile are seen.
type KernelView struct {
	State  Knowledge
	Routes []PodRoute
}

// Slot is a device index of a network card.
type Slot struct{ Card, Device int }

// Busy is what operations of this process were working on at any time since the reads of the
// views began. It is left alone: the operations know better.
type Busy struct {
	ENIs  []ipam.ENIID
	CIDRs []netip.Prefix
	Slots []Slot // of attachments whose ENI has no ID yet
}

// Release is a CIDR that this process released to EC2.
type Release struct {
	CIDR netip.Prefix
	At   time.Time // when EC2 answered
}

// Other is an attached ENI outside the book. It occupies its slot.
type Other struct {
	ID           ipam.ENIID
	Card, Device int
	Why          string
}

// ReconcilePolicy decides which ENIs and addresses pods may use.
type ReconcilePolicy struct {
	InstanceID     string
	PrimaryENI     ipam.ENIID
	ManageUntagged bool // MANAGE_UNTAGGED_ENI
	MultiNIC       bool // ENABLE_MULTI_NIC
	IPv6           bool // pods get IPv6 addresses only, from /80s
	Subnets        SubnetPolicy
	// EC2Every is how often EC2 is asked even if nothing is suspicious: only EC2 shows changed
	// tags. Zero means never for that reason.
	EC2Every time.Duration
	// OrphanAge overrides [OrphanAge]. It must not be longer, and must be below the cooldown;
	// zero means the default.
	OrphanAge time.Duration
}

const (
	// ReleaseSettle is how long EC2 may still show a released CIDR: its lists are eventually
	// consistent (EC2 API Reference, "Eventual consistency"). Upstream waits as long.
	ReleaseSettle = time.Minute
	// ConfirmAfter is how much later EC2 must still not show a CIDR or ENI before it is
	// removed: whatever was just assigned is briefly missing in its lists.
	ConfirmAfter = 30 * time.Second
	// DisputeAfter is the same for anything that the instance metadata still shows.
	DisputeAfter = 5 * time.Minute
	// attachRest is how long after its attachment an ENI may be missing from lists.
	attachRest = time.Minute
	// OrphanAge is how long the route of an ended allocation may remain before it means that
	// a pod is running there.
	OrphanAge = 10 * time.Second
)

// ReconcileInput is the input of [Reconcile].
type ReconcileInput struct {
	Now      time.Time
	Book     ipam.Snapshot
	Policy   ReconcilePolicy
	EC2      EC2View
	Metadata MetadataView
	Kernel   KernelView
	Subnets  []Subnet // nil if unknown
	Busy     Busy
	Released []Release
	Others   []Other   // ReconcileResult.Others of the last reconcile in which EC2 was known
	LastEC2  time.Time // when EC2 last answered; zero if never
}

// ReconcileResult is the result of [Reconcile].
type ReconcileResult struct {
	// Events are to be applied in this order. A book in the state of the input accepts them all.
	Events []ipam.Event
	Notes  []Note
	// NeedEC2 requests a reconcile with a new view of EC2: this one is inconclusive.
	NeedEC2 bool
	// Forget lists releases that need not be remembered any longer.
	Forget []netip.Prefix

	// The rest follows from EC2's view and is empty without it.

	Settled bool       // EC2's view was known and plausible
	SetUp   []Attached // managed and attached, but not in the book: for AttachENI once their routes exist
	Ending  []Attached // at a start: managed ENIs that an earlier process was detaching
	Gone    []ipam.ENI // removed from the book because EC2 no longer shows them: their rules must be removed
	Others  []Other    // ordered by card, device, ID; without the ENIs to set up
	// EFAOnlyCards are network cards beyond the first with an efa-only ENI and no managed
	// one, in order.
	EFAOnlyCards []int
	// CutOff counts assignments whose address EC2 does not show on their ENI.
	CutOff int
}

// NoteKind is the kind of a note. Its text is stable.
type NoteKind string

// Notes of changes: each comes with an event.
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

// Notes of a state: they are repeated by every reconcile while it lasts.
const (
	ENIFound              NoteKind = "eni-found" // to be set up
	AddressesJustReleased NoteKind = "addresses-resting"
	AddressConflict       NoteKind = "address-conflict"
	PodsCutOff            NoteKind = "pods-cut-off"
	MetadataDiffers       NoteKind = "metadata-differs"
	MetadataUnknown       NoteKind = "metadata-unknown"
	EC2Unknown            NoteKind = "ec2-unknown"
	KernelUnknown         NoteKind = "kernel-unknown"
)

// Lasting reports whether the kind describes a state rather than a change: it need not be
// reported again while it lasts.
func (k NoteKind) Lasting() bool {
	switch k {
	case ENIFound, AddressesJustReleased, AddressConflict, PodsCutOff, MetadataDiffers, MetadataUnknown, EC2Unknown, KernelUnknown:
		return true
	}
	return false
}

// Note is a finding, worded for users. It is comparable, so that lasting ones can be recognized.
type Note struct {
	Kind NoteKind
	ENI  ipam.ENIID   // "" if none in particular
	CIDR netip.Prefix // the first of Count; zero if none
	// Count is the number of CIDRs, or of pods if the kind is about pods.
	Count int
	Text  string // why
}
