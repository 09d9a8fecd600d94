package ipamd

import (
	"context"
	"fmt"
	"slices"

	"cnictl/capacity/limits"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// source tells what is attached: EC2, or in IMDS-only mode the instance metadata, which
// then have the last word though they know neither tags nor types.
type source struct {
	ec2      *vpcapi.Client // nil: IMDS-only mode
	metadata *imds.Client
	instance string
	primary  ipam.ENIID
}

// describeENIs describes ENIs by id, or without ids all that are attached.
func (s source) describeENIs(ctx context.Context, ids []ipam.ENIID) ([]resync.ENI, error) {
	if s.ec2 != nil {
		enis, err := s.ec2.DescribeENIs(ctx, ids)
		return enis, vpcapi.Brief(err)
	}
	shown, err := s.metadata.Interfaces(ctx)
	if err != nil {
		return nil, err
	}
	var out []resync.ENI
	for _, f := range shown {
		if len(ids) > 0 && !slices.Contains(ids, f.ENI) {
			continue
		}
		e, ok := resync.FromMetadata(f, s.instance, s.primary)
		if !ok {
			return nil, fmt.Errorf("read ENI %s from instance metadata: not all of its addresses could be read", f.ENI)
		}
		out = append(out, e)
	}
	return out, nil
}

// describeSubnets lists the subnets; none without EC2.
func (s source) describeSubnets(ctx context.Context) ([]resync.Subnet, error) {
	if s.ec2 == nil {
		return nil, nil
	}
	subnets, err := s.ec2.DescribeSubnets(ctx)
	return subnets, vpcapi.Brief(err)
}

// instanceOf finds the limits of the instance type: in the table, else from EC2. Without
// EC2 a type that is not in the table has what is attached: nothing is added anyway.
func (s source) instanceOf(ctx context.Context, instanceType string, shown []imds.Interface) (limits.Instance, error) {
	if found, ok := limits.Lookup(instanceType); ok {
		return found, nil
	}
	if s.ec2 == nil {
		return attachedLimits(instanceType, shown), nil
	}
	described, err := s.ec2.DescribeInstanceType(ctx, instanceType)
	if err != nil {
		return limits.Instance{}, fmt.Errorf("%s: %w", fmt.Sprintf(textUnknownType, instanceType), vpcapi.Brief(err))
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
