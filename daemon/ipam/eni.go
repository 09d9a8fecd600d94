package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// eni is one attached ENI with its CIDRs.
type eni struct {
	ENI
	book *Book
	held bool

	quarantined time.Time // since when; zero if not

	cidrs    []*cidr // ordered by prefix
	assigned int     // in all CIDRs of any kind
	pools    [classes]pool

	state ENIState
	stale bool
}

// permanent ENIs are never detached, so pods on them prevent no detach.
func (e *eni) permanent() bool { return e.Primary || e.Trunk || e.EFA }

func (e *eni) usable() bool { return !e.Excluded && !e.held && e.quarantined.IsZero() }

func (e *eni) touch() {
	e.stale = true
	e.book.stale = true
}

func (e *eni) snapshot() ENIState {
	if e.stale {
		e.state = ENIState{ENI: e.ENI, Held: e.held, QuarantinedAt: e.quarantined}
		if len(e.cidrs) > 0 {
			e.state.CIDRs = make([]CIDRState, len(e.cidrs))
			for i, c := range e.cidrs {
				e.state.CIDRs[i] = c.snapshot()
			}
		}
		e.stale = false
	}
	return e.state
}

func (e *eni) search(p netip.Prefix) (int, bool) {
	return slices.BinarySearchFunc(e.cidrs, p, func(c *cidr, p netip.Prefix) int { return comparePrefixes(c.prefix, p) })
}

func (b *Book) attachENI(ev AttachENI) (Change, error) {
	if ev.ENI.ID == "" || ev.ENI.Card < 0 || ev.ENI.Device < 0 {
		return Change{}, fmt.Errorf("attach ENI %q at card %d device %d: %w", ev.ENI.ID, ev.ENI.Card, ev.ENI.Device, ErrInvalid)
	}
	if b.eniByID[ev.ENI.ID] != nil {
		return Change{}, fmt.Errorf("attach ENI %s: %w", ev.ENI.ID, ErrDuplicate)
	}
	e := &eni{ENI: ev.ENI, book: b}
	fresh, err := b.newCIDRs(e, ev.CIDRs)
	if err != nil {
		return Change{}, fmt.Errorf("attach ENI %s: %w", ev.ENI.ID, err)
	}
	for i := range e.pools {
		e.pools[i] = pool{eni: e, card: b.cardPool(poolKey{e.Card, class(i)})}
	}
	b.eniByID[e.ID] = e
	b.insertENI(e)
	e.touch()
	return b.insertCIDRs(e, fresh), nil
}

func (b *Book) detachENI(ev DetachENI) (Change, error) {
	e, err := b.findENI(ev.ID)
	if err != nil {
		return Change{}, fmt.Errorf("detach ENI: %w", err)
	}
	if e.assigned > 0 && !ev.Force {
		return Change{}, fmt.Errorf("detach ENI %s with %d pods: %w", e.ID, e.assigned, ErrENIInUse)
	}
	var ch Change
	for _, c := range slices.Clone(e.cidrs) {
		ch.Released = append(ch.Released, b.dropCIDR(c)...)
	}
	delete(b.eniByID, e.ID)
	i := slices.Index(b.enis, e)
	b.enis = slices.Delete(b.enis, i, i+1)
	b.stale = true
	return ch, nil
}

func (b *Book) setExcluded(ev SetExcluded) (Change, error) {
	e, err := b.findENI(ev.ID)
	if err != nil {
		return Change{}, fmt.Errorf("exclude ENI: %w", err)
	}
	if e.Excluded != ev.Excluded {
		e.Excluded = ev.Excluded
		e.touch()
		b.reorderENI(e)
	}
	return Change{}, nil
}

func (b *Book) holdENI(ev HoldENI) (Change, error) {
	e, err := b.findENI(ev.ID)
	if err != nil {
		return Change{}, fmt.Errorf("hold ENI: %w", err)
	}
	if e.assigned > 0 {
		return Change{}, fmt.Errorf("hold ENI %s with %d pods: %w", e.ID, e.assigned, ErrENIInUse)
	}
	if err := e.shown(e.cidrs); err != nil {
		return Change{}, fmt.Errorf("hold ENI %s: %w", e.ID, err)
	}
	if !e.held {
		e.held = true
		e.touch()
		b.reorderENI(e)
	}
	return Change{}, nil
}

func (b *Book) unholdENI(ev UnholdENI) (Change, error) {
	e, err := b.findENI(ev.ID)
	if err != nil {
		return Change{}, fmt.Errorf("unhold ENI: %w", err)
	}
	if !e.held {
		return Change{}, nil
	}
	e.held = false
	e.touch()
	b.reorderENI(e)
	return b.placeInto(e.cidrs), nil
}
