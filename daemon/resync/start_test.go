package resync

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// TestReconcile_EmptyBook: at start, ENIs that an earlier process was attaching are set up,
// those it was detaching are awaited, and those only in the metadata occupy a slot.
func TestReconcile_EmptyBook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	eni := func(id ipam.ENIID, device int, status string, address byte) ENI {
		return ENI{
			ID: id, InterfaceType: "interface", AttachmentID: "eni-attach-" + string(id), AttachmentStatus: status, InstanceID: "i-1", Device: device,
			PrimaryIP: netip.AddrFrom4([4]byte{10, 0, 0, address}), Tags: map[string]string{TagInstanceID: "i-1"},
		}
	}
	foreign := eni("eni-foreign", 4, AttachmentAttached, 8)
	foreign.Tags = map[string]string{TagNoManage: "true"}
	in := ReconcileInput{
		Now: now, Policy: ReconcilePolicy{InstanceID: "i-1", PrimaryENI: "eni-primary", Subnets: SubnetPolicy{Custom: true}},
		EC2: EC2View{State: Known, At: now, ENIs: []ENI{
			eni("eni-primary", 0, AttachmentAttached, 4), eni("eni-2", 1, AttachmentAttached, 5),
			eni("eni-new", 2, "attaching", 6), eni("eni-old", 3, AttachmentDetaching, 7), foreign,
		}},
		Metadata: MetadataView{State: Known, At: now, Interfaces: []Interface{{ENI: "eni-primary"}, {ENI: "eni-unlisted", Device: 5}}},
	}
	res := Reconcile(in)
	ids := func(all []Attached) (out []ipam.ENIID) {
		for _, a := range all {
			out = append(out, a.ENI.ID)
		}
		return out
	}
	var others []ipam.ENIID
	for _, o := range res.Others {
		others = append(others, o.ID)
	}
	if !res.Settled || len(res.Events) > 0 || !slices.Equal(ids(res.SetUp), []ipam.ENIID{"eni-primary", "eni-2", "eni-new"}) ||
		!slices.Equal(ids(res.Ending), []ipam.ENIID{"eni-old"}) || !slices.Equal(others, []ipam.ENIID{"eni-foreign", "eni-unlisted"}) {
		t.Errorf("%+v", res)
	}
	// With custom networking the primary ENI is excluded even though its subnet is unknown.
	if !res.SetUp[0].ENI.Excluded || res.SetUp[1].ENI.Excluded {
		t.Errorf("excluded: %v, %v", res.SetUp[0].ENI.Excluded, res.SetUp[1].ENI.Excluded)
	}
	in.EC2.ENIs = in.EC2.ENIs[1:]
	if res := Reconcile(in); res.Settled || len(res.SetUp) > 0 {
		t.Errorf("without the primary ENI: %+v", res)
	}
}
