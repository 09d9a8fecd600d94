//go:build nightly

package e2e_test

import (
	"maps"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

func init() {
	prefixes := env{"ENABLE_PREFIX_DELEGATION": "true", "MAX_ENI": "1", "IP_COOLDOWN_PERIOD": "1", "CNI_ADD_WAIT": "2s", "WARM_PREFIX_TARGET": "1"}
	maps.Copy(takenAddresses, map[string]func(t *testing.T){
		"of a living pod, prefixes": ofLivingPod(prefixes),
		"without a pod, addresses":  withoutPod(singleAddresses),
		"without a pod, prefixes":   withoutPod(prefixes),
		"gone from the metadata only": func(t *testing.T) {
			s := newWatched(t, "m5.large", nil)
			pods := s.mustAdd(s.n, "p", 12, 4)
			s.settled(s.n)
			before := s.world.Snapshot().ENIs
			s.seen(1)
			s.quiet(introspect.EventQuarantined, introspect.EventMissedDEL, introspect.EventCIDRsRemoved, introspect.EventENIDetached)
			held := s.assigned(s.n)
			for _, p := range pods {
				if !held[p.IP] {
					t.Errorf("%s has lost %s", p.Name, p.IP)
				}
				if err := s.n.Ping(p.IP, testenv.Left(t)); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
			if after := s.world.Snapshot().ENIs; len(after) != len(before) || s.difference(s.n) != "" {
				t.Errorf("%d ENIs were %d; %s", len(after), len(before), s.difference(s.n))
			}
		},
		"given to an ENI of the node anew": func(t *testing.T) {
			// The address is not taken, so EC2 offers it in the very next request: for a new ENI.
			// The pod's entry stays, and the ENI is still usable.
			s := newWatched(t, "m5.large", map[string]string{"WARM_ENI_TARGET": "0", "IP_COOLDOWN_PERIOD": "1"})
			pods := s.mustAdd(s.n, "p", 9, 4)
			s.settled(s.n)
			victim := pods[3]
			eni, cidr := s.rangeOf(victim.IP)
			if err := s.world.Unassign(eni, cidr); err != nil {
				t.Fatal(err)
			}
			s.awaitEvent(noticedWithin, introspect.EventQuarantined, eni, cidr)
			more := s.avoid(single(victim.IP), "more", 4)
			s.seen(1)
			s.quiet("book-refused")
			if !s.assigned(s.n)[victim.IP] {
				t.Errorf("%s has lost %s", victim.Name, victim.IP)
			}
			s.del(s.n, append(pods, more...), 4)
			s.nothingLeft(s.n)
		},
	})
}

// withoutPod takes a free address or prefix.
func withoutPod(settings env) func(t *testing.T) {
	return func(t *testing.T) {
		s := newWatched(t, "m5.large", settings)
		pods := s.mustAdd(s.n, "p", 2, 2)
		s.settled(s.n)
		eni, _ := s.rangeOf(pods[0].IP)
		cidr := s.freeOf(eni, pods)
		giveBack := s.takeAway(eni, cidr)
		s.awaitEvent(noticedWithin, introspect.EventQuarantined, eni, cidr)
		pods = append(pods, s.avoid(cidr, "more", 6)...)
		s.within(confirmed, "the range leaves the pool", func() bool { return !s.shows(cidr) })
		s.settled(s.n)
		pods = append(pods, s.avoid(cidr, "late", 1)...)
		giveBack(false)
		if wrong := s.difference(s.n); wrong != "" {
			t.Errorf("the pool is not EC2's world: %s", wrong)
		}
		s.del(s.n, pods, 4)
		s.nothingLeft(s.n)
	}
}
