package resync

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// TestReconcile_MetadataAlone: without EC2 the instance metadata is authoritative: an
// address and an ENI attached by someone else are added.
func TestReconcile_MetadataAlone(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	address := netip.MustParseAddr
	shown := []Interface{
		{ENI: "eni-0", IPv4s: []netip.Addr{address("10.0.0.5"), address("10.0.0.6"), address("10.0.0.7")}},
		{ENI: "eni-1", Device: 1, IPv4s: []netip.Addr{address("10.0.0.8"), address("10.0.0.9")}},
		{ENI: "eni-2", Device: 2}, // it cannot have addresses
	}
	var enis []ENI
	for _, f := range shown {
		e, ok := FromMetadata(f, "i-1", "eni-0")
		if !ok {
			t.Fatalf("%s is not believed", f.ENI)
		}
		enis = append(enis, e)
	}
	primary := ipam.ENIState{
		ENI:   ipam.ENI{ID: "eni-0", Primary: true, PrimaryIP: address("10.0.0.5"), AttachedAt: now.Add(-time.Hour)},
		CIDRs: []ipam.CIDRState{{Prefix: netip.MustParsePrefix("10.0.0.6/32")}},
	}
	res := Reconcile(ReconcileInput{
		Now: now, Book: ipam.Snapshot{ENIs: []ipam.ENIState{primary}},
		Policy:   ReconcilePolicy{InstanceID: "i-1", PrimaryENI: "eni-0", ManageUntagged: true},
		EC2:      EC2View{State: Known, At: now, ENIs: enis},
		Metadata: MetadataView{State: Known, At: now, Interfaces: shown},
		Kernel:   KernelView{State: Known}, LastEC2: now,
	})
	if !res.Settled {
		t.Fatalf("not settled: %+v", res.Notes)
	}
	if len(res.Events) != 1 || len(res.SetUp) != 1 || res.SetUp[0].ENI.ID != "eni-1" || len(res.Others) != 1 || res.Others[0].ID != "eni-2" {
		t.Errorf("events %+v, set up %+v, others %+v", res.Events, res.SetUp, res.Others)
	}
	if _, ok := FromMetadata(Interface{ENI: "eni-0", Unread: PartPrefixes}, "i-1", "eni-0"); ok {
		t.Error("an ENI is accepted although a part of it could not be read")
	}
}
