package warmpool

import (
	"slices"
	"time"
)

// StatedLimitRetry is how long a limit that EC2 stated is believed before the pool asks for one
// more again: the account's limits, or EC2's for the instance type, may have been raised.
const StatedLimitRetry = time.Hour

// Stated is a limit that EC2 stated by refusing a request, below the one known for the instance
// type. The zero value means that there is none.
type Stated struct {
	Most   int       // what EC2 accepts
	OfType int       // what the instance type is known to take
	Since  time.Time // the first refusal
	Retry  time.Time // from then on, one more may be requested
}

// There reports whether EC2 has stated a limit.
func (s Stated) There() bool { return !s.Retry.IsZero() }

// due reports whether it is time to ask for one more.
func (s Stated) due(now time.Time) bool { return s.There() && !now.Before(s.Retry) }

// asked is when EC2 last refused.
func (s Stated) asked() time.Time { return s.Retry.Add(-StatedLimitRetry) }

// refuse is s after EC2 refused more than most; false if the type takes no more either. It raises
// nothing: the refused request may be older than the limit.
func (s Stated) refuse(most, ofType int, now time.Time) (Stated, bool) {
	if most = max(0, most); most >= ofType {
		return s, false
	}
	since := now
	if s.There() {
		most, since = min(most, s.Most), s.Since
	}
	return Stated{Most: most, OfType: ofType, Since: since, Retry: now.Add(StatedLimitRetry)}, true
}

// see is s after there are n. If they were requested after the last refusal, or are as many as
// the type takes, EC2 has changed its mind. Otherwise it stated at least n: some were there, or
// on their way, without being known here.
func (s Stated) see(n int, requested time.Time) Stated {
	switch {
	case !s.There() || n <= s.Most:
		return s
	case n >= s.OfType, requested.After(s.asked()):
		return Stated{}
	}
	s.Most = n
	return s
}

// StatedLimits are the limits that EC2 stated. The zero value means none. They are immutable:
// snapshots share them.
//
// EC2 does not say whether it refused an ENI for the sake of its network card or of the
// instance. The card's limit is lowered: then each card costs at most one refusal an hour.
type StatedLimits struct {
	ENIs  []Stated // per network card; shorter if there are no more
	Slots Stated   // secondary IPs or prefixes per ENI
}

// Slots is how many secondary IPs or prefixes an ENI can hold.
func (l Limits) Slots() int { return max(0, l.IPv4PerENI-1) }

// Lower returns the limits of an instance type, lowered to those that EC2 stated.
func (s StatedLimits) Lower(ofType Limits) Limits {
	if s.Slots.There() {
		ofType.IPv4PerENI = min(ofType.IPv4PerENI, s.Slots.Most+1)
	}
	cloned := false
	for card, stated := range s.ENIs {
		if !stated.There() || card >= len(ofType.ENIsByCard) {
			continue
		}
		if !cloned {
			ofType.ENIsByCard, cloned = slices.Clone(ofType.ENIsByCard), true
		}
		ofType.ENIsByCard[card] = min(ofType.ENIsByCard[card], stated.Most)
	}
	return ofType
}

// ENIRefused is s after EC2 refused to attach another ENI to a card that has some; false if that
// says nothing new, since the type takes no more.
func (s StatedLimits) ENIRefused(ofType Limits, card, attached int, now time.Time) (StatedLimits, bool) {
	stated, lower := at(s.ENIs, card).refuse(attached, at(ofType.ENIsByCard, card), now)
	if !lower {
		return s, false
	}
	return s.with(card, stated), true
}

// ENIsSeen is s with that many ENIs attached to a card; requested is when the daemon requested
// the last of them, zero if something else did or it is unknown.
func (s StatedLimits) ENIsSeen(card, attached int, requested time.Time) StatedLimits {
	before := at(s.ENIs, card)
	if after := before.see(attached, requested); after != before {
		return s.with(card, after)
	}
	return s
}

// SlotsRefused is s after EC2 refused to put more than most secondary IPs or prefixes on an ENI.
func (s StatedLimits) SlotsRefused(ofType Limits, most int, now time.Time) (StatedLimits, bool) {
	stated, lower := s.Slots.refuse(most, ofType.Slots(), now)
	if lower {
		s.Slots = stated
	}
	return s, lower
}

// SlotsSeen is s with an ENI that holds that many secondary IPs or prefixes; see ENIsSeen.
func (s StatedLimits) SlotsSeen(held int, requested time.Time) StatedLimits {
	s.Slots = s.Slots.see(held, requested)
	return s
}

// Any reports whether EC2 has stated a limit.
func (s StatedLimits) Any() bool { return s.Slots.There() || slices.ContainsFunc(s.ENIs, Stated.There) }

// Card is what EC2 stated about the ENIs of a network card.
func (s StatedLimits) Card(card int) Stated { return at(s.ENIs, card) }

func (s StatedLimits) with(card int, stated Stated) StatedLimits {
	all := make([]Stated, max(card+1, len(s.ENIs)))
	copy(all, s.ENIs)
	all[card] = stated
	s.ENIs = all
	return s
}
