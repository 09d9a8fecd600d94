package ipamd

import (
	"fmt"
	"testing"
	"time"

	"cnictl/capacity/capacitytest"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/warmpool"
)

// TestSameCapacity: the daemon reports the same limit of a card's addresses as max-pods counts, in
// both places of its summary, for every type with every setting.
func TestSameCapacity(t *testing.T) {
	t.Parallel()
	for c := range capacitytest.Nodes {
		n := node{instance: c.Instance, prefixes: c.Prefixes()}
		n.identity.InstanceType, n.config.PodENI = c.Type, c.PodENI
		st := keeper.State{
			Policy:    warmpool.Policy{MaxENI: c.MaxENI, CustomNetworking: c.CustomNetworking, ReserveTrunkSlot: c.PodENI && c.Trunk()},
			OtherENIs: []int{c.UnmanagedENIs},
		}
		most := c.MaxENIs
		if c.StatedENIs > 0 {
			stated := func(n int) warmpool.Stated { return warmpool.Stated{Most: n, OfType: n + 1, Retry: time.Unix(1, 0)} }
			st.Stated = warmpool.StatedLimits{ENIs: []warmpool.Stated{stated(c.StatedENIs)}, Slots: stated(c.StatedSlots)}
			most = min(most, c.StatedENIs)
		}
		st.Book.ENIs = []ipam.ENIState{{ENI: ipam.ENI{ID: "eni-primary", Primary: true, Excluded: c.PrimaryExcluded}}}
		for i := range c.FurtherExcluded() {
			st.Book.ENIs = append(st.Book.ENIs, ipam.ENIState{ENI: ipam.ENI{ID: ipam.ENIID(fmt.Sprint("eni-", i)), Excluded: true}})
		}
		if c.TrunkAttached {
			st.Book.ENIs = append(st.Book.ENIs, ipam.ENIState{ENI: ipam.ENI{ID: "eni-trunk", Trunk: true}})
		}
		want := maxpods.Compute(c.Input).PodIPs
		if got := *n.cardView(st, 0, most).AddressLimit; got != want {
			t.Fatalf("%s: the card's limit %d, max-pods %d", c, got, want)
		}
		if got := maxpods.Compute(n.maxPodsInput(st)).PodIPs; got != want {
			t.Fatalf("%s: the daemon's max-pods %d, want %d", c, got, want)
		}
	}
}

// TestSummary_CapacityOfModes: the summary's max-pods knows custom networking, IPv6, and that no
// slot is kept for a trunk that did not come.
func TestSummary_CapacityOfModes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change    func(*node, *keeper.State)
		card, ips int
	}{
		"stock":             {func(*node, *keeper.State) {}, 27, 27},
		"custom networking": {func(_ *node, st *keeper.State) { st.Policy.CustomNetworking = true }, 18, 18},
		"IPv6":              {func(n *node, _ *keeper.State) { n.config.IPv6, n.prefixes = true, true }, 3 << 48, maxpods.Unlimited},
		"a trunk to come":   {func(n *node, st *keeper.State) { n.config.PodENI, st.Policy.ReserveTrunkSlot = true, true }, 18, 18},
		"no trunk to come":  {func(n *node, _ *keeper.State) { n.config.PodENI = true }, 27, 27},
		"MAX_ENI=1 and a trunk": {func(n *node, st *keeper.State) {
			n.config.PodENI, st.Policy.ReserveTrunkSlot, st.Policy.MaxENI = true, true, 1
		}, 9, 9},
	} {
		l := newLonely(t, nil)
		st := l.owner.keeper.State(time.Now())
		row.change(&l.node, &st)
		s := l.summary(st, l.recorder.history)
		ips := -1
		for _, term := range s.MaxPods.Terms {
			if term.Name == "ip" {
				ips = term.Value
			}
		}
		if got := *s.Cards[0].AddressLimit; got != row.card || ips != row.ips {
			t.Errorf("%s: card %d, max-pods %d, want %d and %d", name, got, ips, row.card, row.ips)
		}
	}
}
