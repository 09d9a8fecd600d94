package ipam

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"
)

// ENIID is an EC2 network interface id, "eni-0123456789abcdef0".
type ENIID string

// Sandbox is the key of an assignment: one interface of one CNI attachment. The three names
// are non-empty for assignments made by ADD.
type Sandbox struct {
	Network     string // CNI network name, normally "aws-cni"
	ContainerID string // CNI container id of the sandbox
	IfName      string // interface name inside the pod, normally "eth0"
	// Interface distinguishes the addresses of a pod with an interface per network card: it is
	// the index of the card. It is 0 for every other pod, whatever card its address is on.
	Interface int
}

// maxInterface bounds Sandbox.Interface; no instance type has that many network cards.
const maxInterface = 127

func validateInterface(s Sandbox) error {
	if s.Interface < 0 || s.Interface > maxInterface {
		return fmt.Errorf("interface %d, there are 0 to %d: %w", s.Interface, maxInterface, ErrInvalid)
	}
	return nil
}

// String names the sandbox in error texts: network, interface and a hash of the container ID,
// which relates lines about one sandbox. The ID itself is left out, because errors are read by
// people outside the node.
func (s Sandbox) String() string {
	id := fnv.New32a()
	_, _ = id.Write([]byte(s.ContainerID)) // never fails
	text := fmt.Sprintf("%q %q #%08x", s.Network, s.IfName, id.Sum32())
	if s.Interface > 0 {
		text += fmt.Sprintf(" card %d", s.Interface)
	}
	return text
}

// Pod names the owner of a sandbox, for users and for host link names. It is not a key: a
// recreated StatefulSet pod has the same name and a different sandbox.
type Pod struct {
	Namespace  string
	Name       string
	Interfaces int // network interfaces the pod asked for; 0 means 1
}

// ENI holds the facts of one attached network interface.
type ENI struct {
	ID         ENIID
	MAC        string // lower-case colon form
	Card       int    // network card index
	Device     int    // device index on that card
	Primary    bool
	Trunk      bool
	EFA        bool
	Excluded   bool // its subnet may not give addresses to pods
	SubnetID   string
	Subnet     netip.Prefix // IPv4 CIDR of the subnet
	PrimaryIP  netip.Addr
	RouteTable int       // 254 (main) for the primary ENI
	AttachedAt time.Time // when this process found out about it
}

// Event is a change to the book. The set is closed.
type Event interface{ isEvent() }

type (
	// AttachENI adds an ENI and the CIDRs it holds.
	AttachENI struct {
		ENI   ENI
		CIDRs []netip.Prefix
	}
	// DetachENI removes an ENI with all its CIDRs. Without Force it fails with ErrENIInUse
	// while a pod has one of its addresses; with Force those assignments are returned in
	// Change.Released.
	DetachENI struct {
		ID    ENIID
		Force bool
	}
	// SetExcluded sets whether the ENI is excluded from giving addresses to new pods.
	SetExcluded struct {
		ID       ENIID
		Excluded bool
	}
	// AddCIDRs adds secondary IPs (/32, /128) or prefixes (/28, /80). Existing CIDRs are left
	// as they are. Unplaced assignments whose address is in a new CIDR are placed.
	AddCIDRs struct {
		ID    ENIID
		CIDRs []netip.Prefix
	}
	// RemoveCIDRs removes CIDRs. Without Force it fails with ErrCIDRInUse if one of them has an
	// assigned address, and removes none.
	RemoveCIDRs struct {
		ID    ENIID
		CIDRs []netip.Prefix
		Force bool
	}
	// HoldCIDRs takes unassigned CIDRs out of use while their release to EC2 is in flight. It
	// fails, holding none, with ErrCIDRInUse if one has an assigned address and with
	// ErrQuarantined if one of them or the ENI is quarantined.
	HoldCIDRs struct {
		ID    ENIID
		CIDRs []netip.Prefix
	}
	// UnholdCIDRs puts held CIDRs back into use (the release failed).
	UnholdCIDRs struct {
		ID    ENIID
		CIDRs []netip.Prefix
	}
	// QuarantineCIDRs takes CIDRs out of use that EC2 no longer shows. Their pods keep their
	// addresses; new pods get none, and the CIDRs cannot be held for release. CIDRs that are
	// already quarantined keep their time.
	QuarantineCIDRs struct {
		ID    ENIID
		CIDRs []netip.Prefix
	}
	// UnquarantineCIDRs puts quarantined CIDRs back into use (EC2 shows them again).
	UnquarantineCIDRs struct {
		ID    ENIID
		CIDRs []netip.Prefix
	}
	// QuarantineENI does to an ENI and all its CIDRs, present and future, what QuarantineCIDRs
	// does to some of them.
	QuarantineENI struct{ ID ENIID }
	// UnquarantineENI puts it back into use. CIDRs that are quarantined themselves stay so.
	UnquarantineENI struct{ ID ENIID }
	// HoldENI takes an ENI without assignments out of use while it is being detached. It fails
	// with ErrQuarantined if the ENI or one of its CIDRs is quarantined.
	HoldENI struct{ ID ENIID }
	// UnholdENI puts it back into use.
	UnholdENI struct{ ID ENIID }

	// Assign gives a sandbox one address of a network card. A sandbox that already has an
	// address keeps it (Change.Existing is then true). ErrNoAddress means that nothing is free
	// now.
	//
	// A pod with an interface on every card is assigned card by card, with Interface set to
	// the card. If one card has nothing, a Revert of each earlier Assign that was not Existing
	// leaves the book as it was. [Book.Interfaces] finds the pod's assignments.
	Assign struct {
		Sandbox Sandbox
		Pod     Pod
		Card    int
		Kind    Kind
		Family  Family
	}
	// Restore recreates an assignment read from the checkpoint or rebuilt from the kernel. An
	// address outside every known CIDR becomes an unplaced assignment: its sandbox keeps it,
	// nobody else can get it, and it is placed once its CIDR is known. ErrAddressTaken means
	// that two sandboxes claim one address.
	Restore struct {
		Sandbox    Sandbox
		Pod        Pod
		Address    netip.Addr
		AssignedAt time.Time
	}
	// Unassign ends the assignment of the first of Sandbox, Aliases... that has one, and starts
	// the address's cooldown. ErrUnknownSandbox means that none has one.
	Unassign struct {
		Sandbox Sandbox
		Aliases []Sandbox
	}
	// Revert undoes an Assign that was never answered, without a cooldown.
	Revert struct{ Sandbox Sandbox }
	// Reassign undoes an Unassign that was never answered: the sandbox gets the same address
	// back with its old time.
	Reassign struct{ Assignment Assignment }
	// FlowsDeleted ends a pass over the kernel's connection tracking: the entries of these
	// addresses, which [Book.FlowsDue] listed, are deleted. It counts for those whose sandbox
	// ended before the pass began.
	FlowsDeleted struct {
		Addresses []netip.Addr
		Began     time.Time
		// Again is zero unless the pass failed: then it is when the next one can begin. A failed
		// pass does not count, but if that is too late for the cooldown, it is the last one.
		Again time.Time
	}
)

func (AttachENI) isEvent()         {}
func (DetachENI) isEvent()         {}
func (SetExcluded) isEvent()       {}
func (AddCIDRs) isEvent()          {}
func (RemoveCIDRs) isEvent()       {}
func (HoldCIDRs) isEvent()         {}
func (UnholdCIDRs) isEvent()       {}
func (QuarantineCIDRs) isEvent()   {}
func (UnquarantineCIDRs) isEvent() {}
func (QuarantineENI) isEvent()     {}
func (UnquarantineENI) isEvent()   {}
func (HoldENI) isEvent()           {}
func (UnholdENI) isEvent()         {}
func (Assign) isEvent()            {}
func (Restore) isEvent()           {}
func (Unassign) isEvent()          {}
func (Revert) isEvent()            {}
func (Reassign) isEvent()          {}
func (FlowsDeleted) isEvent()      {}

// Kind selects the CIDRs an Assign may use.
type Kind uint8

const (
	SecondaryIPs Kind = iota // /32 or /128 entries
	Prefixes                 // /28 or /80 entries
)

// Family is an IP family.
type Family uint8

const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// Assignment is one address owned by one sandbox.
type Assignment struct {
	Sandbox    Sandbox
	Pod        Pod
	Address    netip.Addr
	CIDR       netip.Prefix // zero while unplaced
	ENI        ENIID        // "" while unplaced
	Card       int
	Device     int
	RouteTable int
	AssignedAt time.Time
}

// Change is the effect of an applied event.
type Change struct {
	Assigned []Assignment // made or found (Existing) by Assign; made by Restore, Reassign; placed when their CIDR comes into use
	Released []Assignment // ended by Unassign, Revert, forced removals
	Existing bool         // Assign found an existing address of the sandbox
}

// Snapshot is an immutable view of the book.
type Snapshot struct {
	ENIs     []ENIState   // ordered by card, device, ID
	Unplaced []Assignment // restored, with an address in no known CIDR; ordered by address
}

// ENIState is one ENI in a Snapshot. It and everything it refers to never change after
// publication, so snapshots share the states of unchanged ENIs.
type ENIState struct {
	ENI
	Held          bool
	QuarantinedAt time.Time   // zero if not quarantined
	CIDRs         []CIDRState // ordered by prefix
}

// Quarantined reports whether the ENI is quarantined because EC2 no longer shows it. Its pods
// keep their addresses, it serves no others, and it is not released.
func (e ENIState) Quarantined() bool { return !e.QuarantinedAt.IsZero() }

// CIDRState is one secondary IP or prefix of an ENI.
type CIDRState struct {
	Prefix        netip.Prefix
	Held          bool
	QuarantinedAt time.Time      // zero if not quarantined itself; its ENI may still be
	Assigned      int            // addresses owned by sandboxes now
	Records       []AddressState // addresses assigned now or since the process started; ordered
}

// Quarantined reports whether the CIDR is quarantined because EC2 no longer shows it; see
// [ENIState.Quarantined].
func (c CIDRState) Quarantined() bool { return !c.QuarantinedAt.IsZero() }

// IsPrefix reports whether the CIDR is a /28 or /80 rather than a secondary IP.
func (c CIDRState) IsPrefix() bool { return !c.Prefix.IsSingleIP() }

// AddressState is the record of one address.
type AddressState struct {
	Address      netip.Addr
	Sandbox      Sandbox // zero if not assigned
	Pod          Pod
	AssignedAt   time.Time
	UnassignedAt time.Time // zero if never unassigned, or if assigned now
	// Tracked: the kernel's connection tracking may still have entries of the last sandbox, so
	// the address is in cooldown until they are deleted.
	Tracked bool
}

// Assigned reports whether a sandbox owns the address.
func (a AddressState) Assigned() bool { return a.Sandbox != Sandbox{} }

// Cooling reports whether the address is in cooldown at now: unassigned at most cooldown ago,
// or Tracked. With a cooldown of zero it never is.
func (a AddressState) Cooling(now time.Time, cooldown time.Duration) bool {
	return !a.Assigned() && (a.Tracked || cooling(a.UnassignedAt, now, cooldown))
}

// passSoon is when a pass that holds up an address is expected to be over.
const passSoon = time.Second

// CooldownEnd is when an address that is in cooldown at now, unassigned at the given time, is
// expected to be free.
func CooldownEnd(unassigned, now time.Time, cooldown time.Duration) time.Time {
	if end := unassigned.Add(cooldown + 1); end.After(now) { // the cooldown includes its last instant
		return end
	}
	return now.Add(passSoon)
}
