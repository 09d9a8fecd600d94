package keeper

import (
	"testing"

	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// TestCards_OneInTheMiddleServesNone: the second of three cards has no pool. A node without
// addresses reports that, and an unknown DEL is unknown: upstream mistakes the last card for
// one in the middle and answers both with success.
func TestCards_OneInTheMiddleServesNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy.WarmENI = 0
	b.settings.MultiNIC, b.policy.MultiNIC = true, true
	b.limits = warmpool.Limits{IPv4PerENI: 2, ENIsByCard: []int{1, 1, 1}}
	b.recon.efaOnly = []int{1}
	b.give(1)
	b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{ID: "eni-third", Card: 2, SubnetID: testSubnet, RouteTable: 10200}})
	b.apply(b.clock, ipam.AddCIDRs{ID: "eni-third", CIDRs: secondary(2)[1:]})
	for _, name := range []string{"first", "second"} {
		a := b.add(name, 0)
		b.send(a.Add)
		b.write(nil)
		if r := a.got(t); !r.Success || len(r.Allocations) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
	}
	third := b.add("third", 0)
	b.send(third.Add)
	if r := third.got(t); r.Success || len(r.Allocations) != 0 {
		t.Errorf("ADD on a node without addresses: %+v", r)
	}
	unknown := del("unknown")
	b.send(unknown.Del)
	if r := unknown.got(t); r.Success || !r.Unknown {
		t.Errorf("DEL of a sandbox that is not known: %+v", r)
	}
}
