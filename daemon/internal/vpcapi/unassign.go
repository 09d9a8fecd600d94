package vpcapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// Unassign returns addresses (/32, /128) and prefixes (/28, /80) to EC2: one call each for
// IPv4 prefixes, IPv4 addresses and everything IPv6. If a call fails, the others are made
// nevertheless; [keeper.PartlyUnassigned] then says which CIDRs are gone.
func (c *Client) Unassign(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) (err error) {
	defer fail(&err)
	var prefixes, addrs, ipv6 []netip.Prefix
	for _, p := range cidrs {
		switch {
		case !p.Addr().Is4():
			ipv6 = append(ipv6, p)
		case p.IsSingleIP():
			addrs = append(addrs, p)
		default:
			prefixes = append(prefixes, p)
		}
	}
	var gone []netip.Prefix
	var errs []error
	for _, step := range []struct {
		cidrs []netip.Prefix
		do    func(context.Context, ipam.ENIID, []netip.Prefix) error
	}{{prefixes, c.unassignPrefixes}, {addrs, c.unassignAddrs}, {ipv6, c.unassignIPv6}} {
		if len(step.cidrs) == 0 {
			continue
		}
		if err := step.do(ctx, id, step.cidrs); err != nil {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, step.cidrs...)
	}
	if len(errs) == 0 {
		return nil
	}
	err = fmt.Errorf("unassign %d CIDRs from ENI %s: %w", len(cidrs)-len(gone), id, errors.Join(errs...))
	if len(gone) == 0 {
		return err
	}
	return &keeper.PartlyUnassigned{Gone: gone, Err: err}
}

func (c *Client) unassignPrefixes(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) error {
	return c.unassignIPv4(ctx, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(string(id)), Ipv4Prefixes: prefixTexts(cidrs)})
}

func (c *Client) unassignAddrs(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) error {
	return c.unassignIPv4(ctx, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(string(id)), PrivateIpAddresses: addrTexts(cidrs)})
}

func (c *Client) unassignIPv4(ctx context.Context, in *ec2.UnassignPrivateIpAddressesInput) error {
	_, err := call(ctx, c, "UnassignPrivateIpAddresses", c.ec2.UnassignPrivateIpAddresses, in)
	return err
}

func (c *Client) unassignIPv6(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) error {
	var addrs, prefixes []netip.Prefix
	for _, p := range cidrs {
		if p.IsSingleIP() {
			addrs = append(addrs, p)
		} else {
			prefixes = append(prefixes, p)
		}
	}
	_, err := call(ctx, c, "UnassignIpv6Addresses", c.ec2.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{
		NetworkInterfaceId: aws.String(string(id)), Ipv6Addresses: addrTexts(addrs), Ipv6Prefixes: prefixTexts(prefixes)})
	return err
}

func addrTexts(cidrs []netip.Prefix) []string {
	var out []string
	for _, p := range cidrs {
		out = append(out, p.Addr().String())
	}
	return out
}

func prefixTexts(cidrs []netip.Prefix) []string {
	var out []string
	for _, p := range cidrs {
		out = append(out, p.String())
	}
	return out
}
