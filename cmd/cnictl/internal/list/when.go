package list

import (
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// When formats when a problem occurred: how long ago, how long it has lasted, or how much
// longer it will last. It is empty if unknown.
func When(p document.Problem, now time.Time) string {
	before, age, after := "", show.Unknown, ""
	switch {
	case p.At != nil:
		age, after = show.Since(p.At, now), " ago"
	case p.Since != nil:
		before, age = "for ", show.Since(p.Since, now)
	case p.Until != nil:
		age, after = show.Until(p.Until, now), " left"
	}
	if age == show.Unknown {
		return ""
	}
	return before + age + after
}
