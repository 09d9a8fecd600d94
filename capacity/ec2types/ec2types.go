package ec2types

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/capacity/limits"
)

const (
	pageSize = 100 // EC2's limit for DescribeInstanceTypes
	maxPages = 100 // EC2 has some 1,400 types
)

// Describe is EC2's DescribeInstanceTypes. It is a function because a client held as an
// interface makes the linker keep every method of EC2's client, 40 MB.
type Describe func(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)

// All reads the types that a region offers, in no particular order. A type with impossible
// facts is left out and reported in refused. After each page All calls progress with the
// number of types so far. On an error it returns what it has read, too.
func All(ctx context.Context, describe Describe, progress func(read int)) (all []limits.Instance, refused []error, err error) {
	in := &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(pageSize)}
	for range maxPages {
		out, err := describe(ctx, in)
		if err != nil {
			return all, refused, err
		}
		for n := range out.InstanceTypes {
			if i, err := Parse(&out.InstanceTypes[n]); err != nil {
				refused = append(refused, err)
			} else {
				all = append(all, i)
			}
		}
		progress(len(all))
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, refused, nil
		}
	}
	return all, refused, fmt.Errorf("DescribeInstanceTypes has more than %d pages", maxPages)
}

// Parse converts what EC2 reports about a type. MaxENIs is the default network card's
// limit, not EC2's MaximumNetworkInterfaces, which is the total of all cards. A
// hypervisor, vCPUs or memory beyond what we know become unknown instead of an error,
// because new types must work.
func Parse(in *types.InstanceTypeInfo) (limits.Instance, error) {
	i := limits.Instance{Type: string(in.InstanceType), Hypervisor: string(in.Hypervisor), BareMetal: aws.ToBool(in.BareMetal), IPv6PerENI: -1}
	if n := in.NetworkInfo; n != nil {
		i.DefaultCard = int(aws.ToInt32(n.DefaultNetworkCardIndex))
		i.IPv4PerENI = int(aws.ToInt32(n.Ipv4AddressesPerInterface))
		switch {
		case n.Ipv6Supported != nil && !*n.Ipv6Supported:
			i.IPv6PerENI = 0
		case n.Ipv6AddressesPerInterface != nil:
			i.IPv6PerENI = int(*n.Ipv6AddressesPerInterface)
		}
		for _, c := range n.NetworkCards {
			card := limits.Card{Index: int(aws.ToInt32(c.NetworkCardIndex)), MaxENIs: int(aws.ToInt32(c.MaximumNetworkInterfaces))}
			if i.Cards = append(i.Cards, card); card.Index == i.DefaultCard {
				i.MaxENIs = card.MaxENIs
			}
		}
		slices.SortFunc(i.Cards, func(a, b limits.Card) int { return a.Index - b.Index })
	}
	if in.VCpuInfo != nil {
		i.VCPUs = int(aws.ToInt32(in.VCpuInfo.DefaultVCpus))
	}
	if in.MemoryInfo != nil {
		i.MemoryMiB = int(aws.ToInt64(in.MemoryInfo.SizeInMiB))
	}
	i.Arch = arch(in.ProcessorInfo)
	i.ClearImplausible()
	if err := i.Check(); err != nil {
		return limits.Instance{}, fmt.Errorf("EC2 answer: %w", err)
	}
	return i, nil
}

// arch is the architecture that nodes of the type use; x86 types also support i386.
func arch(in *types.ProcessorInfo) string {
	if in == nil {
		return ""
	}
	for _, a := range in.SupportedArchitectures {
		switch a {
		case types.ArchitectureTypeX8664:
			return "amd64"
		case types.ArchitectureTypeArm64:
			return "arm64"
		}
	}
	return ""
}
