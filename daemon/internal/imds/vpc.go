package imds

import (
	"context"
	"net/netip"
)

// pathOf returns the path of one of an interface's values.
func pathOf(mac, name string) (string, error) {
	if _, err := parseMAC(macsPath, mac); err != nil {
		return "", err
	}
	return macsPath + mac + "/" + name, nil
}

// VPCIPv6CIDRs reads the IPv6 CIDRs of an interface's VPC, if it has any.
func (c *Client) VPCIPv6CIDRs(ctx context.Context, mac string) ([]netip.Prefix, error) {
	path, err := pathOf(mac, "vpc-ipv6-cidr-blocks")
	if err != nil {
		return nil, err
	}
	body, found, err := c.get(ctx, path)
	if err != nil || !found {
		return nil, err
	}
	return parseCIDRs(path, body, ipv6Blocks)
}

// VPCCIDRs reads the IPv4 CIDRs of an interface's VPC.
func (c *Client) VPCCIDRs(ctx context.Context, mac string) ([]netip.Prefix, error) {
	path, err := pathOf(mac, "vpc-ipv4-cidr-blocks")
	if err != nil {
		return nil, err
	}
	body, err := c.need(ctx, path)
	if err != nil {
		return nil, err
	}
	cidrs, err := parseCIDRs(path, body, ipv4Blocks)
	if err == nil && len(cidrs) == 0 {
		err = &AnswerError{path, body, "at least one IPv4 block"}
	}
	return cidrs, err
}
