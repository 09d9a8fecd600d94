package imds

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
)

const (
	localIPv4Path = metaData + "local-ipv4"
	rolesPath     = metaData + "iam/security-credentials/"
)

// roleName is what IAM allows.
var roleName = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)

// Role reads the name of the instance's IAM role. If it has none, the error wraps ErrNotThere.
func (c *Client) Role(ctx context.Context) (string, error) {
	body, err := c.need(ctx, rolesPath)
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(body)
	if !roleName.MatchString(name) {
		return "", &AnswerError{rolesPath, name, "the name of a role"}
	}
	return name, nil
}

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
