//go:build nightly

package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

func init() { untaggedENIs["untagged ones are not managed"] = "false" }

// TestReconcile_ENIsDetachedByHand detaches ENIs behind the daemon's back.
func TestReconcile_ENIsDetachedByHand(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]bool{"with pods": true, "without pods": false}, func(t *testing.T, withPods bool) {
		s := newWatched(t, "m5.large", map[string]string{"IP_COOLDOWN_PERIOD": "1", "CNI_ADD_WAIT": "2s", "MAX_ENI": "2"})
		count := 5
		if withPods {
			count = 12
		}
		pods := s.mustAdd(s.n, "p", count, 4)
		s.settled(s.n)
		var eni fakeaws.ENI
		for _, e := range s.world.ENIsOf(s.n.InstanceID) {
			if !e.Primary() {
				eni = e
			}
		}
		var on []*node.Pod
		for _, p := range pods {
			if owner, _ := s.world.OwnerOf(p.IP); owner.ID == eni.ID {
				on = append(on, p)
			}
		}
		if (len(on) > 0) != withPods {
			t.Fatalf("%d pods are on the second ENI", len(on))
		}
		// For a minute after its attachment, or after the daemon's start, an ENI may be
		// missing from EC2's lists. The daemon's first reads are within that time.
		s.kill(s.n, 9)
		s.start(s.n, s.env)
		if err := s.world.DetachENI(eni.Attachment.ID); err != nil {
			t.Fatal(err)
		}
		s.awaitEvent(2*noticedWithin, introspect.EventQuarantined, eni.ID, noRange)
		sum, _, err := s.c.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(sum.ENIs, func(e introspect.ENISummary) bool { return e.ID == eni.ID })
		if at < 0 || !slices.Contains(sum.ENIs[at].Flags, introspect.ENIFlagQuarantined) {
			t.Fatalf("ENIs %+v", sum.ENIs)
		}
		held := s.assigned(s.n)
		for _, p := range pods {
			if !held[p.IP] {
				t.Errorf("%s has lost %s", p.Name, p.IP)
			}
		}
		// No new pod gets one of its addresses.
		more, _ := add(s.n, "more", 9-min(count, 9)+1, 1)
		for _, p := range more {
			if slices.ContainsFunc(eni.CIDRs(), single(p.IP).Overlaps) {
				t.Errorf("%s got %s of an ENI that is gone", p.Name, p.IP)
			}
		}
		s.del(s.n, append(pods, more...), 4)
		s.nothingLeft(s.n)
		if withPods {
			return
		}
		// The sweep for leaked ENIs may delete it first; then the ENI that replaces it may have
		// its address, and rules for that.
		s.within(noticedWithin, "the ENI leaves the pool, and its rules the kernel", func() bool {
			owner, used := s.world.OwnerOf(eni.PrimaryIP)
			reused := used && owner.ID != eni.ID
			return !slices.Contains(s.managed(), eni.ID) && (reused || !strings.Contains(s.ip(s.n, "rule"), eni.PrimaryIP.String()))
		})
	})
}
