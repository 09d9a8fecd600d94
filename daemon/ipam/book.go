package ipam

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"
)

// Options are the settings of a Book.
type Options struct {
	// Cooldown is how long an address is unavailable after its sandbox ended
	// (IP_COOLDOWN_PERIOD). With zero it is available at once, as the last choice.
	Cooldown time.Duration
	// Passes is how often the kernel's connection tracking entries of an address are deleted
	// ([FlowsDeleted]) after its sandbox ended, before the address is free. It has no effect
	// without a cooldown.
	Passes int
}

// Book is the address book of a node. It is not safe for concurrent use.
type Book struct {
	cooldown time.Duration
	passes   int
	now      time.Time // the latest time seen; it never goes backwards

	enis     []*eni // ordered by card, device, ID
	eniByID  map[ENIID]*eni
	cidrs    map[netip.Prefix]*cidr
	owners   map[Sandbox]*record    // every assignment, placed or not
	taken    map[netip.Addr]*record // the same records by address
	unplaced []*record              // ordered by address

	lastInterface int // the highest Sandbox.Interface that ever had an address

	pools   map[poolKey]*heap[*pool] // ENIs that can give an address, best first
	cooling recordList               // over all CIDRs, in order of unassignedAt
	aging   []aging                  // the same for free ones that are not aged; some are out of date

	snapshot      Snapshot
	stale         bool // snapshot is outdated
	staleUnplaced bool
}

// New returns an empty book.
func New(opts Options) *Book {
	passes := opts.Passes
	if opts.Cooldown <= 0 {
		passes = 0
	}
	return &Book{
		cooldown: max(opts.Cooldown, 0),
		passes:   passes,
		eniByID:  map[ENIID]*eni{},
		cidrs:    map[netip.Prefix]*cidr{},
		owners:   map[Sandbox]*record{},
		taken:    map[netip.Addr]*record{},
		pools:    map[poolKey]*heap[*pool]{},
	}
}

// Apply applies one event, or returns an error and leaves the book unchanged. If now is before
// the time of an earlier call, that time is used instead.
func (b *Book) Apply(now time.Time, ev Event) (Change, error) {
	if now.After(b.now) {
		b.now = now
	}
	b.endCooldowns()
	b.age()
	switch ev := ev.(type) {
	case Assign:
		return b.assign(ev)
	case Unassign:
		return b.unassign(ev)
	case Revert:
		return b.revert(ev)
	case Reassign:
		return b.reassign(ev)
	case FlowsDeleted:
		return b.flowsDeleted(ev)
	case Restore:
		return b.restore(ev)
	case AttachENI:
		return b.attachENI(ev)
	case DetachENI:
		return b.detachENI(ev)
	case SetExcluded:
		return b.setExcluded(ev)
	case HoldENI:
		return b.holdENI(ev)
	case UnholdENI:
		return b.unholdENI(ev)
	case AddCIDRs:
		return b.addCIDRs(ev)
	case RemoveCIDRs:
		return b.removeCIDRs(ev)
	case HoldCIDRs:
		return b.holdCIDRs(ev)
	case UnholdCIDRs:
		return b.unholdCIDRs(ev)
	case QuarantineCIDRs:
		return b.quarantineCIDRs(ev.ID, ev.CIDRs, b.now)
	case UnquarantineCIDRs:
		return b.quarantineCIDRs(ev.ID, ev.CIDRs, time.Time{})
	case QuarantineENI:
		return b.quarantineENI(ev.ID, b.now)
	case UnquarantineENI:
		return b.quarantineENI(ev.ID, time.Time{})
	}
	return Change{}, fmt.Errorf("apply %T: %w", ev, ErrInvalid)
}

// Cooldown is the cooldown period of the book.
func (b *Book) Cooldown() time.Duration { return b.cooldown }

// Lookup finds the assignment of a sandbox, placed or not.
func (b *Book) Lookup(s Sandbox) (Assignment, bool) {
	r, ok := b.owners[s]
	if !ok {
		return Assignment{}, false
	}
	return r.assignment(), true
}

// Interfaces finds the assignments of all interfaces of a sandbox, placed or not, in the order
// of Sandbox.Interface: one for an ordinary pod, one per network card for a pod that requested
// that. The Interface of s itself is ignored.
func (b *Book) Interfaces(s Sandbox) []Assignment {
	var all []Assignment
	for s.Interface = 0; s.Interface <= b.lastInterface; s.Interface++ {
		if r, ok := b.owners[s]; ok {
			all = append(all, r.assignment())
		}
	}
	return all
}

// AtAddress finds the assignment of an address, placed or not.
func (b *Book) AtAddress(a netip.Addr) (Assignment, bool) {
	r, ok := b.taken[a]
	if !ok {
		return Assignment{}, false
	}
	return r.assignment(), true
}

// Assignments yields every assignment: the placed ones by ENI and address, then the unplaced
// ones by address. The book must not change during the iteration.
func (b *Book) Assignments() iter.Seq[Assignment] {
	return func(yield func(Assignment) bool) {
		for _, e := range b.enis {
			for _, c := range e.cidrs {
				for _, r := range c.records {
					if r.assigned() && !yield(r.assignment()) {
						return
					}
				}
			}
		}
		for _, r := range b.unplaced {
			if !yield(r.assignment()) {
				return
			}
		}
	}
}

// locate finds the CIDR that contains an address. Each family has only two lengths, so two
// look-ups suffice.
func (b *Book) locate(a netip.Addr) *cidr {
	if c := b.cidrs[netip.PrefixFrom(a, a.BitLen())]; c != nil {
		return c
	}
	p, err := a.Prefix(prefixBits(a))
	if err != nil { // the zero Addr
		return nil
	}
	return b.cidrs[p]
}

func (b *Book) findENI(id ENIID) (*eni, error) {
	e, ok := b.eniByID[id]
	if !ok {
		return nil, fmt.Errorf("find ENI %q: %w", id, ErrUnknownENI)
	}
	return e, nil
}

// insertENI inserts an ENI, keeping b.enis in the order of a snapshot.
func (b *Book) insertENI(e *eni) {
	i, _ := slices.BinarySearchFunc(b.enis, e, compareENIs)
	b.enis = slices.Insert(b.enis, i, e)
}

func compareENIs(x, y *eni) int {
	return cmp.Or(cmp.Compare(x.Card, y.Card), cmp.Compare(x.Device, y.Device), cmp.Compare(x.ID, y.ID))
}
