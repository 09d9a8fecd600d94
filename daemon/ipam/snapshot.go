package ipam

import "time"

// Snapshot returns the state of the book. It rebuilds only what changed since the last call:
// the records of changed CIDRs and the lists that contain them.
func (b *Book) Snapshot() Snapshot {
	if !b.stale {
		return b.snapshot
	}
	next := Snapshot{Unplaced: b.snapshot.Unplaced}
	if len(b.enis) > 0 {
		next.ENIs = make([]ENIState, len(b.enis))
		for i, e := range b.enis {
			next.ENIs[i] = e.snapshot()
		}
	}
	if b.staleUnplaced {
		next.Unplaced = nil
		for _, r := range b.unplaced {
			next.Unplaced = append(next.Unplaced, r.assignment())
		}
	}
	b.snapshot = next
	b.stale, b.staleUnplaced = false, false
	return next
}

// Totals counts the addresses of one network card that pods can have.
type Totals struct {
	Total        int // addresses, assigned or not
	Assigned     int
	Cooling      int // unassigned and still in cooldown
	Free         int // could be assigned now
	Prefixes     int // CIDRs that are prefixes
	FreePrefixes int // prefixes with neither an assigned nor a cooling address
}

// Totals counts the CIDRs of a kind on one network card. It leaves out held or quarantined ENIs
// and CIDRs and excluded ENIs, including their pods.
func (s Snapshot) Totals(card int, kind Kind, now time.Time, cooldown time.Duration) Totals {
	var t Totals
	for i := range s.ENIs {
		e := &s.ENIs[i]
		if e.Card != card || e.Excluded || e.Held || e.Quarantined() {
			continue
		}
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			if c.Held || c.Quarantined() || c.IsPrefix() != (kind == Prefixes) {
				continue
			}
			t.add(c, c.Cooling(now, cooldown))
		}
	}
	return t
}

func (t *Totals) add(c *CIDRState, cooling int) {
	t.Total += c.Size()
	t.Assigned += c.Assigned
	t.Cooling += cooling
	t.Free += c.Size() - c.Assigned - cooling
	if c.IsPrefix() {
		t.Prefixes++
		if c.Assigned+cooling == 0 {
			t.FreePrefixes++
		}
	}
}

// Cooling counts the addresses in cooldown at now.
func (c CIDRState) Cooling(now time.Time, cooldown time.Duration) int {
	n := 0
	for i := range c.Records {
		if c.Records[i].Cooling(now, cooldown) {
			n++
		}
	}
	return n
}
