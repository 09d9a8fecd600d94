package ipamd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// This file takes in the ENIs that were attached before the daemon started.

// classify splits what is attached into ENIs for the book and slots that others use.
func classify(n *node, view outside, interfaces []imds.Interface, now time.Time, log *slog.Logger) ([]resync.Attached, error) {
	subnets := make(map[string]vpcapi.Subnet, len(view.subnets))
	for _, s := range view.subnets {
		subnets[s.ID] = s
	}
	cidrOf := make(map[ipam.ENIID]netip.Prefix, len(interfaces))
	for _, f := range interfaces {
		cidrOf[f.ENI] = f.SubnetCIDR
	}
	var managed []resync.Attached
	for _, e := range view.attached {
		primary := e.ID == n.identity.PrimaryENI
		switch resync.Owner(resync.OwnershipInput{
			Primary: primary, Card: e.Card, Type: resync.InterfaceType(e.InterfaceType), Tags: e.Tags,
			InstanceID: n.identity.InstanceID, ManageUntagged: n.config.ManageUntagged, MultiNIC: n.config.MultiNIC,
		}) {
		case resync.Unmanaged:
			n.countOther(e.Card, e.Device)
			continue
		case resync.Ignored:
			continue
		}
		subnet := subnets[e.SubnetID]
		if !cidrOf[e.ID].IsValid() {
			cidrOf[e.ID] = subnet.CIDR
		}
		device := e.Device
		if primary {
			device = 0
		}
		managed = append(managed, resync.Attached{
			ENI: ipam.ENI{
				ID: e.ID, MAC: e.MAC, Card: e.Card, Device: device, Primary: primary,
				Trunk: e.InterfaceType == string(resync.TypeTrunk), EFA: e.InterfaceType == string(resync.TypeEFA),
				Excluded: n.subnetPolicy.Excluded(resync.Subnet{ID: subnet.ID, Tags: subnet.Tags}),
				SubnetID: e.SubnetID, Subnet: cidrOf[e.ID], PrimaryIP: e.PrimaryIP,
				RouteTable: netnames.RouteTable(e.Card, device), AttachedAt: now,
			},
			CIDRs: cidrs(e),
		})
	}
	return managed, n.compareWithIMDS(view, interfaces, log)
}

// compareWithIMDS counts interfaces that only IMDS shows: EC2 has let them go or does
// not show them yet, so their device index is not to be used.
func (n *node) compareWithIMDS(view outside, interfaces []imds.Interface, log *slog.Logger) error {
	for _, f := range interfaces {
		if slices.ContainsFunc(view.attached, func(e vpcapi.ENI) bool { return e.ID == f.ENI }) {
			continue
		}
		if f.ENI == n.identity.PrimaryENI {
			return fmt.Errorf(textNoENIs+": EC2 lists %d attached to %s, but not the primary one, %s", len(view.attached), n.identity.InstanceID, f.ENI)
		}
		log.Warn("ENI is in instance metadata but EC2 does not list it as attached", slog.String(logline.KeyENI, string(f.ENI)), slog.Int(logline.KeyDevice, f.Device))
		n.countOther(f.Card, f.Device)
	}
	return nil
}

// countOther records a slot that an ENI outside the book occupies.
func (n *node) countOther(card, device int) {
	if card < len(n.otherENIs) {
		n.otherENIs[card]++
		n.otherDevices[card] = append(n.otherDevices[card], device)
	}
}

// uncountOther ends what countOther began.
func (n *node) uncountOther(card, device int) {
	if card >= len(n.otherENIs) {
		return
	}
	if i := slices.Index(n.otherDevices[card], device); i >= 0 {
		n.otherENIs[card]--
		n.otherDevices[card] = slices.Delete(n.otherDevices[card], i, i+1)
	}
}

// startLinkWait bounds the wait for links of ENIs that were attached before the
// daemon started: they are there unless the attach is seconds old.
const startLinkWait = time.Second

// setUpENIs puts the routes of every secondary ENI into the kernel. An ENI whose
// routes cannot be made comes late: it stays out of the pool until they are
// (spec/ipamd.md §13.1 row 13), and serving does not wait for it.
func setUpENIs(ctx context.Context, exec *executor, managed []resync.Attached, log *slog.Logger) (usable, late []resync.Attached) {
	failed := make([]error, len(managed))
	var group errgroup.Group
	for i, m := range managed {
		if m.ENI.Primary {
			continue
		}
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, startLinkWait)
			defer cancel()
			failed[i] = exec.host.SetupENI(ctx, exec.eniInput(m.ENI))
			return nil
		})
	}
	_ = group.Wait() // its functions return nil
	for i, m := range managed {
		if failed[i] != nil {
			log.Warn("ENI not set up at start, will be tried again", slog.String(logline.KeyENI, string(m.ENI.ID)), slog.Any(logline.KeyError, failed[i]))
			late = append(late, m)
			continue
		}
		usable = append(usable, m)
	}
	return usable, late
}

// countOthers reserves the slots of ENIs that come late.
func (n *node) countOthers(late []resync.Attached) {
	for _, m := range late {
		n.countOther(m.ENI.Card, m.ENI.Device)
	}
}

// adoptAll goes on setting up the ENIs that come late.
func (x *executor) adoptAll(late []resync.Attached) {
	for _, m := range late {
		x.spawn(func(ctx context.Context) { x.adopt(ctx, m) })
	}
}

// adopt tries to set up an ENI until it is done, the ENI is gone, or the context ends.
func (x *executor) adopt(ctx context.Context, m resync.Attached) {
	var pause clock
	for {
		err := x.setUpENI(ctx, m.ENI)
		if err == nil {
			x.post(eniAdopted{m})
			return
		}
		found, describeErr := x.ec2.DescribeENIs(ctx, []ipam.ENIID{m.ENI.ID})
		if describeErr == nil && (len(found) == 0 || found[0].AttachmentID == "") {
			x.post(eniGone{m.ENI})
			return
		}
		x.log.Warn("ENI not set up, will be tried again", slog.String(logline.KeyENI, string(m.ENI.ID)), slog.Any(logline.KeyError, err))
		if pause.sleep(ctx) != nil {
			return
		}
	}
}

// eniAdopted reports that an ENI that came late is ready for pods.
type eniAdopted struct{ resync.Attached }

func (m eniAdopted) handle(o *owner, now time.Time) {
	o.node.uncountOther(m.ENI.Card, m.ENI.Device)
	m.ENI.AttachedAt = now
	for _, ev := range resync.Adopt(o.book.Snapshot(), []resync.Attached{m.Attached}) {
		o.apply(now, ev)
	}
	o.log.Info(fmt.Sprintf(textENISetUp, m.ENI.ID), slog.String(logline.KeyENI, string(m.ENI.ID)), slog.Int(logline.KeyDevice, m.ENI.Device)) //nolint:sloglint // the original's line
}

// eniGone reports that an ENI that came late is not attached any more.
type eniGone struct{ ipam.ENI }

func (m eniGone) handle(o *owner, _ time.Time) {
	o.node.uncountOther(m.Card, m.Device)
	delete(o.attachments, m.ID)
}
