package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// This file changes who owns which address.

func (b *Book) assign(ev Assign) (Change, error) {
	s := ev.Sandbox
	if s.Network == "" || s.ContainerID == "" || s.IfName == "" {
		return Change{}, fmt.Errorf("assign address to sandbox %v, every part is needed: %w", s, ErrInvalid)
	}
	if err := validateInterface(s); err != nil {
		return Change{}, fmt.Errorf("assign address to sandbox %v: %w", s, err)
	}
	if s.Interface > 0 && s.Interface != ev.Card {
		return Change{}, fmt.Errorf("assign address of card %d to sandbox %v: %w", ev.Card, s, ErrInvalid)
	}
	if ev.Kind > Prefixes || (ev.Family != IPv4 && ev.Family != IPv6) {
		return Change{}, fmt.Errorf("assign address of kind %d, family %d: %w", ev.Kind, ev.Family, ErrInvalid)
	}
	if r := b.owners[s]; r != nil {
		return Change{Assigned: []Assignment{r.assignment()}, Existing: true}, nil
	}
	usable := b.pools[poolKey{ev.Card, classOf(ev.Kind, ev.Family)}]
	if usable == nil || usable.empty() {
		return Change{}, fmt.Errorf("assign address of card %d: %w", ev.Card, ErrNoAddress)
	}
	r := usable.best().cidrs.best().take()
	r.own(s, ev.Pod, b.now)
	b.enlist(r)
	b.counted(r.cidr, +1)
	return Change{Assigned: []Assignment{r.assignment()}}, nil
}

func (b *Book) unassign(ev Unassign) (Change, error) {
	r := b.owners[ev.Sandbox]
	for i := 0; r == nil && i < len(ev.Aliases); i++ {
		r = b.owners[ev.Aliases[i]]
	}
	if r == nil {
		return Change{}, fmt.Errorf("unassign address of sandbox %v: %w", ev.Sandbox, ErrUnknownSandbox)
	}
	ch := Change{Released: []Assignment{r.assignment()}}
	b.disown(r)
	r.unassignedAt, r.passes = b.now, b.passes
	b.release(r)
	return ch, nil
}

func (b *Book) revert(ev Revert) (Change, error) {
	r := b.owners[ev.Sandbox]
	if r == nil {
		return Change{}, fmt.Errorf("revert assignment of sandbox %v: %w", ev.Sandbox, ErrUnknownSandbox)
	}
	ch := Change{Released: []Assignment{r.assignment()}}
	b.disown(r)
	if c := r.cidr; c != nil && r.unassignedAt.IsZero() {
		c.forget(r)
		b.counted(c, -1)
		return ch, nil
	}
	b.release(r)
	return ch, nil
}

func (b *Book) reassign(ev Reassign) (Change, error) {
	a := ev.Assignment
	return b.restore(Restore{Sandbox: a.Sandbox, Pod: a.Pod, Address: a.Address, AssignedAt: a.AssignedAt})
}

func (b *Book) restore(ev Restore) (Change, error) {
	if (ev.Sandbox == Sandbox{}) || !ev.Address.IsValid() || ev.Address.Is4In6() || ev.Address.Zone() != "" {
		return Change{}, fmt.Errorf("restore address %v of sandbox %v: %w", ev.Address, ev.Sandbox, ErrInvalid)
	}
	if err := validateInterface(ev.Sandbox); err != nil {
		return Change{}, fmt.Errorf("restore address %v of sandbox %v: %w", ev.Address, ev.Sandbox, err)
	}
	if have := b.owners[ev.Sandbox]; have != nil {
		if have.addr == ev.Address {
			return Change{Assigned: []Assignment{have.assignment()}, Existing: true}, nil
		}
		return Change{}, fmt.Errorf("restore address %v of sandbox %v, which has %v: %w",
			ev.Address, ev.Sandbox, have.addr, ErrDuplicate)
	}
	if b.taken[ev.Address] != nil {
		return Change{}, fmt.Errorf("restore address %v of sandbox %v: %w", ev.Address, ev.Sandbox, ErrAddressTaken)
	}
	r := &record{addr: ev.Address}
	r.own(ev.Sandbox, ev.Pod, ev.AssignedAt)
	b.enlist(r)
	if c := b.locate(r.addr); c != nil && c.inUse() {
		b.place(c, r)
	} else {
		i, _ := b.searchUnplaced(r.addr)
		b.unplaced = slices.Insert(b.unplaced, i, r)
		b.touchUnplaced()
	}
	return Change{Assigned: []Assignment{r.assignment()}}, nil
}

// enlist makes an owned record findable.
func (b *Book) enlist(r *record) {
	b.owners[r.sandbox] = r
	b.taken[r.addr] = r
	b.lastInterface = max(b.lastInterface, r.sandbox.Interface)
}

// disown ends the ownership of a record without moving it to a new place.
func (b *Book) disown(r *record) {
	delete(b.owners, r.sandbox)
	delete(b.taken, r.addr)
	r.sandbox, r.pod = Sandbox{}, Pod{}
}

// release moves a disowned record to the free ones; an unplaced record is dropped.
func (b *Book) release(r *record) {
	c := r.cidr
	if c == nil {
		if i, ok := b.searchUnplaced(r.addr); ok {
			b.unplaced = slices.Delete(b.unplaced, i, i+1)
			b.touchUnplaced()
		}
		return
	}
	if b.rests(r) {
		b.cooling.insert(r)
	} else {
		b.free(r)
	}
	c.touch()
	b.counted(c, -1)
}

// counted changes the number of assigned addresses of a CIDR, and moves it to its new rank.
func (b *Book) counted(c *cidr, by int) {
	c.count(by)
	b.reorder(c)
}

func (b *Book) searchUnplaced(a netip.Addr) (int, bool) {
	return slices.BinarySearchFunc(b.unplaced, a, func(r *record, a netip.Addr) int { return r.addr.Compare(a) })
}
