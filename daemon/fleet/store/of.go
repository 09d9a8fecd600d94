package store

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// Of is the fleet as samples that were all read by now tell of it: for those who read it
// once. Of two samples of one node the later one in the list counts.
func Of(samples []introspect.NodeIPAM, now time.Time) *View {
	s := New()
	for _, n := range samples {
		s.PutAt(n, now)
	}
	return s.View()
}

// SubnetsOf are the subnets that samples tell of, by id.
func SubnetsOf(samples []introspect.NodeIPAM, now time.Time) []SubnetUse {
	return Of(samples, now).Subnets
}

// TrunksOf are the nodes of samples that have to do with trunk ENIs, by name.
func TrunksOf(samples []introspect.NodeIPAM, now time.Time) []TrunkUse {
	return Of(samples, now).Trunks()
}
