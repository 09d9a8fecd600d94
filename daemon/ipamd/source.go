package ipamd

import (
	"context"
	"fmt"
	"slices"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// metadataOnly replaces EC2 in IMDS-only mode: it uses the instance metadata, which has
// neither tags nor ENI types.
type metadataOnly struct {
	keeper.EC2 // nil: in this mode nothing asks EC2 for a change
	metadata   *imds.Client
	instance   string
	primary    ipam.ENIID
}

// DescribeENIs describes ENIs by ID or, without IDs, all attached ENIs.
func (m metadataOnly) DescribeENIs(ctx context.Context, ids []ipam.ENIID) ([]resync.ENI, error) {
	shown, err := m.metadata.Interfaces(ctx)
	if err != nil {
		return nil, unread(err)
	}
	var out []resync.ENI
	for _, f := range shown {
		if len(ids) > 0 && !slices.Contains(ids, f.ENI) {
			continue
		}
		e, ok := resync.FromMetadata(f, m.instance, m.primary)
		if !ok {
			return nil, unread(fmt.Errorf("read ENI %s from instance metadata: not all of its addresses could be read", f.ENI))
		}
		out = append(out, e)
	}
	return out, nil
}

func unread(err error) error {
	return &keeper.Failure{Cause: cause.EC2Error, Unanswered: true, Err: err}
}

// DescribeSubnets returns no subnets.
func (m metadataOnly) DescribeSubnets(context.Context) ([]resync.Subnet, error) { return nil, nil }

// instanceOf finds the limits of the instance type, in the table or else from EC2. Without EC2
// (nil) the limits of an unlisted type are what is attached: nothing is added anyway.
func instanceOf(ctx context.Context, ec2 *vpcapi.Client, instanceType string, shown []imds.Interface) (limits.Instance, error) {
	if found, ok := limits.Lookup(instanceType); ok {
		return found, nil
	}
	if ec2 == nil {
		return attachedLimits(instanceType, shown), nil
	}
	described, err := ec2.DescribeInstanceType(ctx, instanceType)
	if err != nil {
		return limits.Instance{}, fmt.Errorf("%s: %w", fmt.Sprintf(textUnknownType, instanceType), err)
	}
	return described, nil
}

func attachedLimits(instanceType string, shown []imds.Interface) limits.Instance {
	out := limits.Instance{Type: instanceType, IPv4PerENI: 1, IPv6PerENI: -1, Hypervisor: "nitro", TrunkingCompatible: limits.No}
	byCard := map[int]int{}
	for _, f := range shown {
		byCard[f.Card]++
		out.IPv4PerENI = max(out.IPv4PerENI, len(f.IPv4s)+len(f.Prefixes))
	}
	last := 0
	for card := range byCard {
		last = max(last, card)
	}
	for card := range last + 1 {
		out.Cards = append(out.Cards, limits.Card{Index: card, MaxENIs: max(1, byCard[card])})
	}
	out.MaxENIs = out.Cards[0].MaxENIs
	return out
}
