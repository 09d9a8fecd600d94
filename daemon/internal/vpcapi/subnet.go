package vpcapi

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Subnet is a subnet of the node's VPC and availability zone.
type Subnet = resync.Subnet

// cidrs are a subnet's CIDRs. Both are zero if the subnet is unknown.
type cidrs struct {
	v4 netip.Prefix // zero if the known subnet is IPv6-only
	v6 netip.Prefix // zero if none
}

// ipv6Only reports whether the subnet is known to have no IPv4 addresses.
func (c cidrs) ipv6Only() bool { return !c.v4.IsValid() && c.v6.IsValid() }

// IPv6OnlyError rejects a subnet without IPv4: in every mode a node's ENI needs an IPv4
// address, on which its metadata and rules are based.
type IPv6OnlyError struct {
	SubnetID string
	Made     ipam.ENIID // the ENI that EC2 created before this was known; "": no request was made
}

func (e *IPv6OnlyError) Error() string {
	return fmt.Sprintf("%s is IPv6-only: a node's network interfaces need an IPv4 address too; use a dual-stack subnet", e.SubnetID)
}

// DescribeSubnets lists the subnets of the node's VPC in its availability zone, by id. The
// client checks addresses in later answers against them. IPv6-only subnets are left out: a
// node's ENI cannot be created there, see IPv6OnlyError.
func (c *Client) DescribeSubnets(ctx context.Context) (_ []Subnet, err error) {
	defer fail(&err)
	var out []Subnet
	in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("vpc-id", c.conf.VPCID), filter("availability-zone", c.conf.AZ)}, MaxResults: aws.Int32(pageSize)}
	err = pages(func() (*string, error) {
		page, err := call(ctx, c, "DescribeSubnets", c.ec2.DescribeSubnets, in)
		if err != nil {
			return nil, err
		}
		for i := range page.Subnets {
			s, err := parseSubnet(&page.Subnets[i])
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		in.NextToken = page.NextToken
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("describe subnets of %s in %s: %w", c.conf.VPCID, c.conf.AZ, err)
	}
	slices.SortFunc(out, func(a, b Subnet) int { return cmp.Compare(a.ID, b.ID) })
	c.rememberSubnets(out)
	return slices.DeleteFunc(out, func(s Subnet) bool { return !s.CIDR.IsValid() }), nil
}

func parseSubnet(in *types.Subnet) (Subnet, error) {
	s := Subnet{ID: aws.ToString(in.SubnetId), AZ: aws.ToString(in.AvailabilityZone), AvailableIPs: int(aws.ToInt32(in.AvailableIpAddressCount))}
	if err := checkID("subnetId", "subnet-", s.ID); err != nil {
		return Subnet{}, err
	}
	if s.AvailableIPs < 0 {
		return Subnet{}, &AnswerError{"availableIpAddressCount", strconv.Itoa(s.AvailableIPs), "0 or more"}
	}
	var err error
	if s.Tags, err = parseTags(in.Tags); err != nil {
		return Subnet{}, err
	}
	if s.IPv6CIDR, err = parseSubnetIPv6(in.Ipv6CidrBlockAssociationSet); err != nil {
		return Subnet{}, err
	}
	if in.CidrBlock == nil && aws.ToBool(in.Ipv6Native) && s.IPv6CIDR.IsValid() {
		return s, nil
	}
	if s.CIDR, err = netip.ParsePrefix(aws.ToString(in.CidrBlock)); err != nil || !s.CIDR.Addr().Is4() || s.CIDR.Masked() != s.CIDR || s.CIDR.Bits() < 16 || s.CIDR.Bits() > 28 {
		return Subnet{}, &AnswerError{"cidrBlock", aws.ToString(in.CidrBlock), wantSubnetRange}
	}
	return s, nil
}

// parseSubnetIPv6 finds the associated block; EC2 allows only one.
func parseSubnetIPv6(in []types.SubnetIpv6CidrBlockAssociation) (netip.Prefix, error) {
	var out netip.Prefix
	for _, a := range in {
		if a.Ipv6CidrBlockState == nil || a.Ipv6CidrBlockState.State != types.SubnetCidrBlockStateCodeAssociated {
			continue
		}
		p, err := netip.ParsePrefix(aws.ToString(a.Ipv6CidrBlock))
		if err != nil || !p.Addr().Is6() || p.Addr().Is4In6() || p.Masked() != p || p.Bits() < 44 || p.Bits() > 64 || !ipam.IsHostAddr(p.Addr()) {
			return netip.Prefix{}, &AnswerError{"ipv6CidrBlock", aws.ToString(a.Ipv6CidrBlock), wantSubnetRange6}
		}
		if out.IsValid() && out != p {
			return netip.Prefix{}, &AnswerError{"ipv6CidrBlockAssociationSet", p.String(), "one associated block, besides " + out.String()}
		}
		out = p
	}
	return out, nil
}

func (c *Client) rememberSubnets(all []Subnet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.subnets)
	for _, s := range all {
		c.subnets[s.ID] = cidrs{s.CIDR, s.IPv6CIDR}
	}
}

// cidrsOf returns the CIDRs of an ENI's subnet, as far as known.
func (c *Client) cidrsOf(id ipam.ENIID) cidrs {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subnets[c.enis[id].subnetID]
}

func (c *Client) cidrsOfSubnet(id string) cidrs {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subnets[id]
}
