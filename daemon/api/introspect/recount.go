package introspect

import "time"

// Recount sets every state and count of the pool for the time now (the node's clock), with
// a cooldown after an address's last pod. The addresses of excluded ENIs count on the ENI
// but not on its card: no pod can get them.
//
// The summary of our daemon may count more as cooling. To it an address also cools until the
// connections of its last pod were looked for a second time, which is late while it is busy, and
// upstream's document, from which a Pool is decoded, has no member for that.
func (p *Pool) Recount(now time.Time, cooldown time.Duration) {
	cards := make(map[int]*CardSummary, len(p.Cards))
	secondary := make(map[int]bool)
	for i := range p.Cards {
		p.Cards[i] = CardSummary{
			Card: p.Cards[i].Card, Mode: ModeSecondaryIP,
			ENIs: new(0), Cooling: new(0), Prefixes: new(0), FreePrefixes: new(0),
		}
		cards[p.Cards[i].Card] = &p.Cards[i]
	}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		e.recount(now, cooldown)
		card := cards[e.Card]
		if card == nil {
			continue
		}
		*card.ENIs++
		if e.Excluded {
			continue
		}
		card.Total += e.Total
		card.Assigned += e.Assigned
		*card.Cooling += e.Cooling
		card.Free += e.Free
		*card.Prefixes += e.Prefixes
		for _, c := range e.CIDRs {
			if !c.IsPrefix() {
				secondary[e.Card] = true
			} else if c.Assigned == 0 {
				*card.FreePrefixes++
			}
		}
	}
	for index, card := range cards {
		switch {
		case *card.Prefixes > 0 && secondary[index]:
			card.Mode = ModeMixed
		case *card.Prefixes > 0:
			card.Mode = ModePrefix
		}
	}
}

func (e *NodeENI) recount(now time.Time, cooldown time.Duration) {
	e.Total, e.Assigned, e.Cooling, e.Free, e.Prefixes = 0, 0, 0, 0, 0
	for i := range e.CIDRs {
		c := &e.CIDRs[i]
		c.recount(now, cooldown)
		e.Total += c.Total
		e.Assigned += c.Assigned
		e.Cooling += c.Cooling
		e.Free += c.Free
		if c.IsPrefix() {
			e.Prefixes++
		}
	}
}

func (c *NodeCIDR) recount(now time.Time, cooldown time.Duration) {
	// At most 2^48, the size of a /80.
	c.Total = 1 << (c.CIDR.Addr().BitLen() - c.CIDR.Bits())
	c.Assigned, c.Cooling = 0, 0
	for i := range c.Addresses {
		a := &c.Addresses[i]
		switch {
		case a.State == AddressAssigned:
			c.Assigned++
		case a.UnassignedAt != nil && now.Sub(*a.UnassignedAt) <= cooldown && !now.IsZero():
			a.State = AddressCooling
			c.Cooling++
		default:
			a.State = AddressFree
		}
	}
	c.Free = c.Total - c.Assigned - c.Cooling
}
