package vpcapi

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// CreateENI is a request for a new ENI. EC2 cannot create one with both a /80 and the
// address that the ENI itself needs, so the /80 is assigned later.
type CreateENI = keeper.CreateENI

// CreateENI creates a tagged ENI. The answer lists all its addresses, so there is no need to
// wait for the metadata service.
//
// After an error that follows the creation (a malformed answer), the sweep of unattached
// ENIs deletes the ENI: its tags identify the owner.
func (c *Client) CreateENI(ctx context.Context, s CreateENI) (_ ENI, err error) {
	defer fail(&err)
	if c.cidrsOfSubnet(s.SubnetID).ipv6Only() {
		return ENI{}, fmt.Errorf("create ENI in %s: %w", s.SubnetID, &IPv6OnlyError{SubnetID: s.SubnetID})
	}
	if len(s.SecurityGroups) > 0 {
		if err := checkGroups(s.SecurityGroups); err != nil {
			return ENI{}, fmt.Errorf("create ENI in %s: %w", s.SubnetID, err)
		}
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = time.Now()
	}
	in := &ec2.CreateNetworkInterfaceInput{
		SubnetId:                        aws.String(s.SubnetID),
		Description:                     aws.String(DescriptionPrefix + c.conf.InstanceID),
		Groups:                          s.SecurityGroups,
		ConnectionTrackingSpecification: connTrackRequest(s.ConnTrack),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface,
			Tags: sdkTags(c.creationTags(s.CreatedAt))}},
	}
	if s.Token != "" {
		in.ClientToken = aws.String(s.Token)
	}
	if s.IPs > 0 {
		in.SecondaryPrivateIpAddressCount = aws.Int32(int32(s.IPs))
	}
	if s.Prefixes > 0 {
		in.Ipv4PrefixCount = aws.Int32(int32(s.Prefixes))
	}
	if s.IPv6 {
		in.Ipv6AddressCount = aws.Int32(1)
	}
	out, err := call(ctx, c, "CreateNetworkInterface", c.ec2.CreateNetworkInterface, in)
	if err != nil {
		return ENI{}, fmt.Errorf("create ENI in %s: %w", s.SubnetID, err)
	}
	e, err := c.created(s, out.NetworkInterface)
	if err != nil {
		return ENI{}, fmt.Errorf("create ENI in %s: %w", s.SubnetID, err)
	}
	c.remember(e)
	return e, nil
}

func (c *Client) created(s CreateENI, in *types.NetworkInterface) (ENI, error) {
	if in == nil {
		return ENI{}, &AnswerError{"networkInterface", "", "the created interface"}
	}
	e, err := parseENI(in, c.cidrsOfSubnet)
	switch {
	case err != nil:
		return ENI{}, err
	case e.SubnetID != s.SubnetID:
		return ENI{}, &AnswerError{"subnetId", e.SubnetID, s.SubnetID}
	case !e.PrimaryIP.IsValid() && len(e.IPv6s) > 0:
		return ENI{}, &IPv6OnlyError{s.SubnetID, e.ID}
	case !e.PrimaryIP.IsValid():
		return ENI{}, &AnswerError{"privateIpAddress", "", wantIPv4}
	case len(e.SecondaryIPs) > s.IPs:
		return ENI{}, &AnswerError{"privateIpAddressesSet", fmt.Sprint(len(e.SecondaryIPs)), fmt.Sprintf("%d secondary addresses", s.IPs)}
	case len(e.Prefixes) > s.Prefixes:
		return ENI{}, &AnswerError{"ipv4PrefixSet", fmt.Sprint(len(e.Prefixes)), fmt.Sprintf("%d prefixes", s.Prefixes)}
	case len(e.IPv6Prefixes) > 0:
		return ENI{}, &AnswerError{"ipv6PrefixSet", fmt.Sprint(len(e.IPv6Prefixes)), "no /80 prefix"}
	case s.IPv6 && len(e.IPv6s) == 0:
		return ENI{}, &AnswerError{"ipv6AddressesSet", "", wantIPv6}
	}
	return e, nil
}

// DeleteENI deletes an unattached ENI. It succeeds if the ENI does not exist.
func (c *Client) DeleteENI(ctx context.Context, id ipam.ENIID) (err error) {
	defer fail(&err)
	_, err = call(ctx, c, "DeleteNetworkInterface", c.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(string(id))})
	if err != nil && !IsNotFound(err) {
		return fmt.Errorf("delete ENI %s: %w", id, err)
	}
	c.forget(id)
	return nil
}

// AssignIPs adds n secondary addresses to an ENI and returns them.
func (c *Client) AssignIPs(ctx context.Context, id ipam.ENIID, n int) (_ []netip.Addr, err error) {
	defer fail(&err)
	out, err := c.assign(ctx, id, &ec2.AssignPrivateIpAddressesInput{SecondaryPrivateIpAddressCount: aws.Int32(int32(n))})
	if err != nil {
		return nil, fmt.Errorf("assign %d addresses to ENI %s: %w", n, id, err)
	}
	var all []string
	for _, a := range out.AssignedPrivateIpAddresses {
		all = append(all, aws.ToString(a.PrivateIpAddress))
	}
	addrs, err := parseIPv4s("assignedPrivateIpAddressesSet", all, n, c.cidrsOf(id).v4)
	if err != nil {
		return nil, fmt.Errorf("assign %d addresses to ENI %s: %w", n, id, err)
	}
	return addrs, nil
}

// AssignPrefixes adds n /28 prefixes to an ENI and returns them.
func (c *Client) AssignPrefixes(ctx context.Context, id ipam.ENIID, n int) (_ []netip.Prefix, err error) {
	defer fail(&err)
	out, err := c.assign(ctx, id, &ec2.AssignPrivateIpAddressesInput{Ipv4PrefixCount: aws.Int32(int32(n))})
	if err != nil {
		return nil, fmt.Errorf("assign %d prefixes to ENI %s: %w", n, id, err)
	}
	var all []string
	for _, p := range out.AssignedIpv4Prefixes {
		all = append(all, aws.ToString(p.Ipv4Prefix))
	}
	prefixes, err := parsePrefixes4("assignedIpv4PrefixSet", all, n, c.cidrsOf(id).v4)
	if err != nil {
		return nil, fmt.Errorf("assign %d prefixes to ENI %s: %w", n, id, err)
	}
	return prefixes, nil
}

// AssignIPv6Prefix adds a /80 prefix to an ENI and returns it.
func (c *Client) AssignIPv6Prefix(ctx context.Context, id ipam.ENIID) (_ netip.Prefix, err error) {
	defer fail(&err)
	out, err := call(ctx, c, "AssignIpv6Addresses", c.ec2.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{
		NetworkInterfaceId: aws.String(string(id)), Ipv6PrefixCount: aws.Int32(1),
	})
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("assign a /80 prefix to ENI %s: %w", id, err)
	}
	if n := len(out.AssignedIpv6Prefixes); n != 1 {
		return netip.Prefix{}, fmt.Errorf("assign a /80 prefix to ENI %s: %w", id, &AnswerError{"assignedIpv6PrefixSet", fmt.Sprintf("%d members", n), "the prefix that was asked for"})
	}
	p, err := parsePrefix6("assignedIpv6PrefixSet", out.AssignedIpv6Prefixes[0], c.cidrsOf(id).v6)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("assign a /80 prefix to ENI %s: %w", id, err)
	}
	return p, nil
}

func (c *Client) assign(ctx context.Context, id ipam.ENIID, in *ec2.AssignPrivateIpAddressesInput) (*ec2.AssignPrivateIpAddressesOutput, error) {
	in.NetworkInterfaceId = aws.String(string(id))
	return call(ctx, c, "AssignPrivateIpAddresses", c.ec2.AssignPrivateIpAddresses, in)
}
