package imds

import (
	"context"
	"net/netip"
	"strings"
)

const localIPv4Path = metaData + "local-ipv4"

// PrimaryMAC reads the MAC of the primary ENI, in lower-case colon form.
func (c *Client) PrimaryMAC(ctx context.Context) (string, error) {
	body, err := c.need(ctx, macPath)
	if err != nil {
		return "", err
	}
	return parseMAC(macPath, strings.TrimSpace(body))
}

// LocalIPv4 reads the primary IPv4 address of the primary ENI.
func (c *Client) LocalIPv4(ctx context.Context) (netip.Addr, error) {
	body, err := c.need(ctx, localIPv4Path)
	if err != nil {
		return netip.Addr{}, err
	}
	return parseAddr(localIPv4Path, strings.TrimSpace(body), false)
}

// PrimaryIPv6 reads the IPv6 address of the primary ENI. If it has none, the error wraps
// ErrNotThere.
func (c *Client) PrimaryIPv6(ctx context.Context) (netip.Addr, error) {
	body, err := c.need(ctx, ipv6Path)
	if err != nil {
		return netip.Addr{}, err
	}
	return parseAddr(ipv6Path, strings.TrimSpace(body), true)
}
