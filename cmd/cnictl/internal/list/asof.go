package list

import (
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/tui/show"
)

// freshFor is how long the count of a subnet's free addresses counts as current; other nodes
// use the subnet too.
const freshFor = 5 * time.Minute

// AsOf formats the age of a subnet's count. An old count is marked and dimmed, one of unknown
// age only dimmed.
func AsOf(s introspect.Subnet, now time.Time) (string, paint.Class) {
	age := show.Since(s.AsOf, now)
	switch {
	case s.Available == nil:
		return age, paint.Plain
	case age == show.Unknown:
		return age, paint.Dim
	case now.Sub(*s.AsOf) > freshFor:
		return age + " (old)", paint.Dim
	}
	return age, paint.Plain
}
