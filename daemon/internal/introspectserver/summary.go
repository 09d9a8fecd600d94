package introspectserver

import (
	"cmp"
	"slices"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

// Summary completes the view's summary from the address book, so that /v1/summary and
// /v1/enis of the same moment agree.
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
	s.ENIs = enis(v, s.Cards)
	return s
}

// cards returns the cards that the daemon listed, and those that have an ENI.
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

// count sets a card's counts. They cover CIDRs of the card's mode on ENIs that serve pods,
// except CIDRs and ENIs that are being removed or that EC2 does not show.
func count(c *introspect.CardSummary, book ipam.Snapshot, now time.Time, cooldown time.Duration) {
	kind := ipam.SecondaryIPs
	if c.Mode == introspect.ModePrefix {
		kind = ipam.Prefixes
	}
	t := book.Totals(c.Card, kind, now, cooldown)
	c.Total, c.Assigned, c.Cooling, c.Free, c.Prefixes = t.Total, t.Assigned, &t.Cooling, t.Free, &t.Prefixes
	c.ENIs, c.FreePrefixes = new(0), new(0)
	for i := range book.ENIs {
		e := &book.ENIs[i]
		if e.Card != c.Card {
			continue
		}
		*c.ENIs++ // even while it is being detached, as it still holds its slot
		if !serves(e) {
			continue
		}
		for _, cidr := range e.CIDRs {
			if counted(cidr, c.Mode) && cidr.IsPrefix() && cidr.Assigned == 0 {
				*c.FreePrefixes++
			}
		}
	}
	if c.AddressLimit == nil && c.ENILimit != nil && c.SlotsPerENI != nil {
		limit := *c.ENILimit * *c.SlotsPerENI
		if c.Mode == introspect.ModePrefix {
			limit *= limits.PrefixSize
		}
		c.AddressLimit = &limit
	}
}

// serves reports whether an ENI's addresses count towards its card.
func serves(e *ipam.ENIState) bool { return !e.Excluded && !e.Held && !e.Quarantined() }

// counted reports whether a CIDR counts on a card with a mode.
func counted(c ipam.CIDRState, mode string) bool {
	return !c.Held && !c.Quarantined() && c.IsPrefix() == (mode == introspect.ModePrefix)
}

// enis returns the managed ENIs, counted like their cards.
func enis(v View, cards []introspect.CardSummary) []introspect.ENISummary {
	out := make([]introspect.ENISummary, 0, len(v.Book.ENIs))
	for i := range v.Book.ENIs {
		e := &v.Book.ENIs[i]
		n := introspect.ENISummary{ID: string(e.ID), Card: e.Card, Device: e.Device, SubnetID: e.SubnetID, Flags: eniFlags(e)}
		at := slices.IndexFunc(cards, func(c introspect.CardSummary) bool { return c.Card == e.Card })
		for _, c := range e.CIDRs {
			if counted(c, cards[at].Mode) {
				n.Total += c.Size()
				n.Assigned += c.Assigned
				n.Cooling += c.Cooling(v.Now, v.Cooldown)
			}
		}
		n.Free = n.Total - n.Assigned - n.Cooling
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b introspect.ENISummary) int {
		return cmp.Or(cmp.Compare(a.Card, b.Card), cmp.Compare(a.Device, b.Device), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func eniFlags(e *ipam.ENIState) []string {
	out := []string{}
	for _, f := range []struct {
		set  bool
		flag string
	}{
		{e.Primary, introspect.ENIFlagPrimary},
		{e.Trunk, introspect.ENIFlagTrunk},
		{e.EFA, introspect.ENIFlagEFA},
		{e.Excluded, introspect.ENIFlagExcluded},
		{e.Held, introspect.ENIFlagHeld},
		{e.Quarantined(), introspect.ENIFlagQuarantined},
	} {
		if f.set {
			out = append(out, f.flag)
		}
	}
	return out
}

// config returns the /v1/config document.
func config(v View) introspect.NodeConfig {
	items := v.Config
	if items == nil {
		items = []introspect.ConfigRow{}
	}
	return introspect.NodeConfig{APIVersion: introspect.APIVersion, Kind: introspect.KindConfig, Items: items}
}
