package keeper

import (
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Bugs are deliberate mistakes. daemon/sim switches them on to show that it finds
// them; nothing else may (testenv/archtest).
type Bugs struct {
	AnswerBeforeDurable bool // an ADD is answered before its allocation is on disk
	ForgetOnRestart     bool // a start drops an allocation
	ReleaseWithoutHold  bool // addresses on their way back to EC2 may be given to pods
	LeakDetached        bool // a detached ENI is not deleted
	KeepMissedDELs      bool // allocations of pods that are gone are never found
	IgnoreQuarantine    bool // an address that the outside does not show is dropped with its pod
	TrustMetadata       bool // what the metadata service does not show is taken for gone
	LeakFailedAttach    bool // an ENI whose attach failed is not deleted
}

// distort falsifies what a reconcile sees.
func (b Bugs) distort(in *resync.ReconcileInput) {
	if !b.TrustMetadata || in.Metadata.State != resync.Known {
		return
	}
	in.EC2 = resync.EC2View{State: resync.Known, At: in.Metadata.At}
	for _, f := range in.Metadata.Interfaces {
		e := resync.ENI{
			ID: f.ENI, MAC: f.MAC, Card: f.Card, Device: f.Device, SubnetID: f.SubnetID, Prefixes: f.Prefixes,
			AttachmentID: "eni-attach-0", AttachmentStatus: resync.AttachmentAttached, InstanceID: in.Policy.InstanceID,
		}
		if len(f.IPv4s) > 0 {
			e.PrimaryIP, e.SecondaryIPs = f.IPv4s[0], f.IPv4s[1:]
		}
		in.EC2.ENIs = append(in.EC2.ENIs, e)
	}
}

// worsen makes of a quarantine what upstream does: the pods lose their record.
func (b Bugs) worsen(events []ipam.Event) []ipam.Event {
	if !b.IgnoreQuarantine {
		return events
	}
	var out []ipam.Event
	for _, ev := range events {
		switch ev := ev.(type) {
		case ipam.QuarantineCIDRs:
			out = append(out, ipam.RemoveCIDRs{ID: ev.ID, CIDRs: ev.CIDRs, Force: true})
		case ipam.QuarantineENI:
			out = append(out, ipam.DetachENI{ID: ev.ID, Force: true})
		default:
			out = append(out, ev)
		}
	}
	return out
}
