package nodes

import (
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
)

// freshFor is how long a subnet's free addresses, which other nodes use too, count as
// current.
const freshFor = 5 * time.Minute

// AsOf prints the age of a subnet's count. A count of the past is marked as old and
// dim, one of unknown age dim.
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
