package nodes

import (
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/show"
)

// When is the time of a problem: how long ago, since, or still. It is empty when unknown.
func When(p document.Problem, now time.Time) string {
	before, age, after := "", show.Unknown, ""
	switch {
	case p.At != nil:
		age, after = show.Since(p.At, now), " ago"
	case p.Since != nil:
		before, age = "for ", show.Since(p.Since, now)
	case p.Until != nil:
		age, after = show.Until(p.Until, now), " more"
	}
	if age == show.Unknown {
		return ""
	}
	return before + age + after
}
