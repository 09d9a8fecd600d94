package introspectserver

import (
	"cmp"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

// Summary completes the view's summary with what the address book tells, so that
// /v1/summary and /v1/enis of one moment agree.
func Summary(v View) introspect.Summary {
	s := v.Summary
	s.APIVersion, s.Kind = introspect.APIVersion, introspect.KindSummary
	seconds := v.Cooldown.Seconds()
	s.CooldownSeconds = &seconds
	unplaced := len(v.Book.Unplaced)
	s.Unplaced = &unplaced
	if len(s.LastErrors) > introspect.MaxLastErrors {
		s.LastErrors = s.LastErrors[:introspect.MaxLastErrors]
	}
	s.Cards = cards(v)
	return s
}

// cards are those the daemon named and those that have an ENI.
func cards(v View) []introspect.CardSummary {
	out := slices.Clone(v.Summary.Cards)
	for _, e := range v.Book.ENIs {
		if !slices.ContainsFunc(out, func(c introspect.CardSummary) bool { return c.Card == e.Card }) {
			out = append(out, introspect.CardSummary{Card: e.Card, Mode: introspect.ModeSecondaryIP})
		}
	}
	slices.SortFunc(out, func(a, b introspect.CardSummary) int { return cmp.Compare(a.Card, b.Card) })
	for i := range out {
		count(&out[i], v.Book, v.Now, v.Cooldown)
	}
	if out == nil {
		out = []introspect.CardSummary{}
	}
	return out
}

// count sets the counts of a card: CIDRs of its mode on ENIs that serve pods and
// are not on their way out.
func count(c *introspect.CardSummary, book ipam.Snapshot, now time.Time, cooldown time.Duration) {
	c.ENIs, c.Total, c.Assigned, c.Cooling, c.Free, c.Prefixes, c.FreePrefixes = 0, 0, 0, 0, 0, 0, 0
	for _, e := range book.ENIs {
		if e.Card != c.Card {
			continue
		}
		c.ENIs++ // also while it is being detached: it holds its slot
		if e.Excluded || e.Held {
			continue
		}
		for _, cidr := range e.CIDRs {
			if !cidr.Held && cidr.IsPrefix() == (c.Mode == introspect.ModePrefix) {
				countCIDR(c, cidr, now, cooldown)
			}
		}
	}
	c.Free = c.Total - c.Assigned - c.Cooling
	if c.AddressLimit == nil && c.ENILimit != nil && c.SlotsPerENI != nil {
		limit := *c.ENILimit * *c.SlotsPerENI
		if c.Mode == introspect.ModePrefix {
			limit *= 16 // addresses of a /28
		}
		c.AddressLimit = &limit
	}
}

func countCIDR(c *introspect.CardSummary, cidr ipam.CIDRState, now time.Time, cooldown time.Duration) {
	c.Total += size(cidr.Prefix)
	c.Assigned += cidr.Assigned
	if cidr.IsPrefix() {
		c.Prefixes++
		if cidr.Assigned == 0 {
			c.FreePrefixes++
		}
	}
	for _, r := range cidr.Records {
		if r.Cooling(now, cooldown) {
			c.Cooling++
		}
	}
}

// config is the /v1/config document.
func config(v View) introspect.NodeConfig {
	items := v.Config
	if items == nil {
		items = []introspect.ConfigRow{}
	}
	return introspect.NodeConfig{APIVersion: introspect.APIVersion, Kind: introspect.KindConfig, Items: items}
}
