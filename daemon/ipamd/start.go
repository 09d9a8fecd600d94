package ipamd

import (
	"cnictl/daemon/api/logline"

	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// node is what start-up learned about this instance. Only the owner changes the
// fields that can change (vpcCIDRs, otherENIs, securityGroups).
type node struct {
	config         config.Config
	settings       []config.Setting
	problems       int    // settings not used as written
	version        string // of this build
	identity       imds.Identity
	instance       limits.Instance
	limits         warmpool.Limits
	prefixes       bool // prefix delegation is wanted and possible
	provisioning   bool
	checkpointPath string
	vpcCIDRs       []netip.Prefix
	securityGroups []string
	subnetPolicy   resync.SubnetPolicy
	otherENIs      []int   // attached and not in the book, per card
	otherDevices   [][]int // their device indexes
	started        time.Time
}

func (n node) kind() ipam.Kind {
	if n.prefixes {
		return ipam.Prefixes
	}
	return ipam.SecondaryIPs
}

func (n node) otherKind() ipam.Kind {
	if n.prefixes {
		return ipam.SecondaryIPs
	}
	return ipam.Prefixes
}

// outside is the first picture of everything beyond the process.
type outside struct {
	attached []vpcapi.ENI
	subnets  []vpcapi.Subnet
	routes   []hostnet.PodRoute
	links    map[string]int
}

// look reads EC2 and the kernel side by side: none of these needs another's answer.
func look(ctx context.Context, ec2 *vpcapi.Client, host *hostnet.Host, ids []ipam.ENIID, log *slog.Logger) (outside, error) {
	var out outside
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if out.attached, err = ec2.DescribeENIs(ctx, ids); err != nil {
			return fmt.Errorf(textNoENIs+": %w", err)
		}
		return nil
	})
	group.Go(func() error {
		subnets, err := ec2.DescribeSubnets(ctx)
		if err != nil {
			// Growth can do without: the node's own subnet is known.
			log.Warn("subnets not described at start", slog.String(logline.KeyCause, string(vpcapi.Cause(err))), slog.Any(logline.KeyError, err))
			return nil
		}
		out.subnets = subnets
		return nil
	})
	group.Go(func() (err error) {
		if out.links, err = host.PodLinks(ctx); err != nil {
			return fmt.Errorf("list host links: %w", err)
		}
		if out.routes, err = host.PodRoutes(ctx); err != nil {
			return fmt.Errorf("list pod routes: %w", err)
		}
		return nil
	})
	return out, group.Wait()
}

// instanceOf finds the limits of the instance type: in the table, else from EC2.
func instanceOf(ctx context.Context, ec2 *vpcapi.Client, instanceType string) (limits.Instance, error) {
	if found, ok := limits.Lookup(instanceType); ok {
		return found, nil
	}
	described, err := ec2.DescribeInstanceType(ctx, instanceType)
	if err != nil {
		return limits.Instance{}, fmt.Errorf("%s: %w", fmt.Sprintf(textUnknownType, instanceType), err)
	}
	return described, nil
}

func plannerLimits(i limits.Instance, multiNIC bool) warmpool.Limits {
	if multiNIC {
		return warmpool.Limits{IPv4PerENI: i.IPv4PerENI, ENIsByCard: i.ENIsByCard()}
	}
	return warmpool.Limits{IPv4PerENI: i.IPv4PerENI, ENIsByCard: []int{i.MaxENIs}}
}

// classify splits what is attached into ENIs for the book and slots that others use.
func classify(n *node, view outside, interfaces []imds.Interface, now time.Time) []resync.Attached {
	subnets := make(map[string]vpcapi.Subnet, len(view.subnets))
	for _, s := range view.subnets {
		subnets[s.ID] = s
	}
	cidrOf := make(map[ipam.ENIID]netip.Prefix, len(interfaces))
	for _, f := range interfaces {
		cidrOf[f.ENI] = f.SubnetCIDR
	}
	n.otherENIs = make([]int, len(n.limits.ENIsByCard))
	n.otherDevices = make([][]int, len(n.limits.ENIsByCard))
	var managed []resync.Attached
	for _, e := range view.attached {
		primary := e.ID == n.identity.PrimaryENI
		owner := resync.Owner(resync.OwnershipInput{
			Primary: primary, Card: e.Card, Type: resync.InterfaceType(e.InterfaceType), Tags: e.Tags,
			InstanceID: n.identity.InstanceID, ManageUntagged: n.config.ManageUntagged, MultiNIC: n.config.MultiNIC,
		})
		switch owner {
		case resync.Unmanaged:
			if e.Card < len(n.otherENIs) {
				n.otherENIs[e.Card]++
				n.otherDevices[e.Card] = append(n.otherDevices[e.Card], e.Device)
			}
			continue
		case resync.Ignored:
			continue
		}
		subnet := subnets[e.SubnetID]
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
	return managed
}

// setUpENIs puts the routes of every secondary ENI into the kernel. An ENI whose
// routes cannot be made stays out of the pool (spec/ipamd.md §13.1 row 13).
func setUpENIs(ctx context.Context, exec *executor, managed []resync.Attached, log *slog.Logger) []resync.Attached {
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
	usable := managed[:0:0]
	for i, m := range managed {
		if failed[i] != nil {
			log.Error("ENI left out of the pool", slog.String(logline.KeyENI, string(m.ENI.ID)), slog.Any(logline.KeyError, failed[i]))
			continue
		}
		usable = append(usable, m)
	}
	return usable
}

// startLinkWait bounds the wait for links of ENIs that were attached before the
// daemon started: they are there unless the attach is seconds old.
const startLinkWait = 15 * time.Second

func policyOf(c config.Config, prefixes bool, maxPods int) warmpool.Policy {
	return warmpool.Policy{
		PrefixDelegation: prefixes,
		WarmENI:          c.WarmENI,
		WarmIP:           c.WarmIP,
		MinIP:            c.MinIP,
		WarmPrefix:       c.WarmPrefix,
		MaxENI:           c.MaxENI,
		MaxPods:          maxPods,

		ManageUnschedulable: c.ManageUnschedulable,
		Cooldown:            c.Cooldown,
		ScaleDownInterval:   30 * time.Second,
		ENIMinAge:           60 * time.Second,
	}
}
