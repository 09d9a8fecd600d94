package vpcapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// actions are the calls that change something or describe a part, each with an answer from
// EC2's documentation. A call returns an error or checks its own result.
var actions = []struct {
	name, answer string
	call         func(ctx context.Context, t *testing.T, c *Client) error
}{
	{"AttachNetworkInterface", `<attachmentId>eni-attach-0a</attachmentId><networkCardIndex>0</networkCardIndex>`, func(ctx context.Context, t *testing.T, c *Client) error {
		id, err := c.AttachENI(ctx, "eni-0a", 0, 1)
		if (err == nil) != (checkID("", "eni-attach-", id) == nil) {
			t.Errorf("attachment %q, %v", id, err)
		}
		return err
	}},
	{"DetachNetworkInterface", `<return>true</return>`, func(ctx context.Context, _ *testing.T, c *Client) error { return c.DetachENI(ctx, "eni-attach-0a") }},
	{"DeleteNetworkInterface", `<return>true</return>`, func(ctx context.Context, t *testing.T, c *Client) error {
		err := c.DeleteENI(ctx, "eni-0a")
		if IsNotFound(err) {
			t.Error("an ENI that is gone need not be deleted")
		}
		return err
	}},
	{"ModifyNetworkInterfaceAttribute", `<return>true</return>`, func(ctx context.Context, _ *testing.T, c *Client) error {
		return c.SetDeleteOnTermination(ctx, "eni-0a", "eni-attach-0a")
	}},
	{"CreateTags", `<return>true</return>`, func(ctx context.Context, _ *testing.T, c *Client) error { return c.TagENI(ctx, "eni-0a", nil) }},
	{"AssignPrivateIpAddresses", `<networkInterfaceId>eni-0a</networkInterfaceId><assignedPrivateIpAddressesSet><assignedPrivateIpAddress><privateIpAddress>10.0.0.9</privateIpAddress></assignedPrivateIpAddress></assignedPrivateIpAddressesSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			ips, err := c.AssignIPs(ctx, "eni-0a", 3)
			return checkList(t, ips, err, 3, func(a netip.Addr) bool { return subnet.Contains(a) })
		}},
	{"AssignPrivateIpAddresses", `<assignedIpv4PrefixSet><assignedIpv4Prefix><ipv4Prefix>10.0.0.32/28</ipv4Prefix></assignedIpv4Prefix></assignedIpv4PrefixSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			prefixes, err := c.AssignPrefixes(ctx, "eni-0a", 2)
			return checkList(t, prefixes, err, 2, func(p netip.Prefix) bool { return p.Bits() == 28 && p.Masked() == p && subnet.Contains(p.Addr()) })
		}},
	{"UnassignPrivateIpAddresses", `<return>true</return>`, func(ctx context.Context, t *testing.T, c *Client) error {
		cidrs := []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32"), netip.MustParsePrefix("10.0.0.32/28"), netip.MustParsePrefix("2001:db8::1/128")}
		err := c.Unassign(ctx, "eni-0a", cidrs)
		var partly *keeper.PartlyUnassigned
		if errors.As(err, &partly) && (len(partly.Gone) == 0 || len(partly.Gone) == len(cidrs)) {
			t.Errorf("partly: %v", partly.Gone)
		}
		return err
	}},
	{"DescribeNetworkInterfaces", `<networkInterfaceSet><item><networkInterfaceId>eni-0b</networkInterfaceId><subnetId>subnet-0a</subnetId><macAddress>02:00:00:00:00:02</macAddress>` +
		`<description>aws-K8S-i-0a</description><status>available</status><tagSet><item><key>node.k8s.amazonaws.com/instance_id</key><value>i-0a</value></item></tagSet></item></networkInterfaceSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			enis, err := c.DescribeOrphans(ctx)
			for _, e := range enis {
				if err != nil || e.Description != DescriptionPrefix+"i-0a" || e.Tags[TagNoManage] == "true" || checkID("", "eni-", string(e.ID)) != nil {
					t.Errorf("orphan %+v, %v", e, err)
				}
			}
			return err
		}},
	{"DescribeInstanceTypes", `<instanceTypeSet><item><instanceType>m5.large</instanceType><networkInfo><ipv4AddressesPerInterface>10</ipv4AddressesPerInterface><networkCards><item>` +
		`<networkCardIndex>0</networkCardIndex><maximumNetworkInterfaces>3</maximumNetworkInterfaces></item></networkCards></networkInfo></item></instanceTypeSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			l, err := c.DescribeInstanceType(ctx, "m5.large")
			if err == nil && (l.MaxENIs < 1 || l.MaxENIs > maxIndex || l.IPv4PerENI < 1 || l.IPv4PerENI > maxAddresses || l.IPv6PerENI < -1 || l.IPv6PerENI > maxAddresses) {
				t.Errorf("accepted %+v", l)
			}
			return err
		}},
	{"AssignIpv6Addresses", `<networkInterfaceId>eni-0a</networkInterfaceId><assignedIpv6PrefixSet><item>2001:db8:0:1:5::/80</item></assignedIpv6PrefixSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			p, err := c.AssignIPv6Prefix(ctx, "eni-0a")
			if err == nil && (p.Bits() != 80 || p.Masked() != p || !subnet6.Contains(p.Addr())) || err != nil && p.IsValid() {
				t.Errorf("accepted %s with %v", p, err)
			}
			return err
		}},
	{"ModifyNetworkInterfaceAttribute", `<return>true</return>`, func(ctx context.Context, _ *testing.T, c *Client) error {
		return c.SetSecurityGroups(ctx, "eni-0a", []string{"sg-0a"})
	}},
	{"DescribeNetworkInterfaces", `<networkInterfaceSet><item><networkInterfaceId>eni-0b</networkInterfaceId><subnetId>subnet-0a</subnetId><macAddress>02:00:00:00:00:02</macAddress>` +
		`<groupSet><item><groupId>sg-0a</groupId></item></groupSet><ipv6AddressesSet><item><ipv6Address>2001:db8:0:1::4</ipv6Address></item></ipv6AddressesSet>` +
		`<ipv6PrefixSet><item><ipv6Prefix>2001:db8:0:1:5::/80</ipv6Prefix></item></ipv6PrefixSet></item></networkInterfaceSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			enis, err := c.DescribeENIs(ctx, nil)
			for _, e := range enis {
				checkENI6(t, c, e)
			}
			return err
		}},
	{"CreateNetworkInterface", `<networkInterface><networkInterfaceId>eni-0b</networkInterfaceId><subnetId>subnet-0a</subnetId><macAddress>02:00:00:00:00:02</macAddress><privateIpAddress>10.0.0.4</privateIpAddress>` +
		`<ipv6AddressesSet><item><ipv6Address>2001:db8:0:1::4</ipv6Address></item></ipv6AddressesSet></networkInterface>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			e, err := c.CreateENI(ctx, CreateENI{SubnetID: "subnet-0a", IPv6: true})
			if err == nil && (!e.PrimaryIP.IsValid() || len(e.IPv6s) == 0 || len(e.IPv6Prefixes) > 0 || len(e.Prefixes)+len(e.SecondaryIPs) > 0) {
				t.Errorf("accepted %+v", e)
			}
			checkENI6(t, c, e)
			return err
		}},
	{"DescribeSubnets", `<subnetSet><item><subnetId>subnet-0a</subnetId><cidrBlock>10.0.0.0/24</cidrBlock><ipv6CidrBlockAssociationSet><item><ipv6CidrBlock>2001:db8:0:1::/64</ipv6CidrBlock>` +
		`<ipv6CidrBlockState><state>associated</state></ipv6CidrBlockState></item></ipv6CidrBlockAssociationSet></item></subnetSet>`,
		func(ctx context.Context, t *testing.T, c *Client) error {
			subnets, err := c.DescribeSubnets(ctx)
			for _, s := range subnets {
				if !s.CIDR.Addr().Is4() || s.IPv6CIDR.IsValid() && (!s.IPv6CIDR.Addr().Is6() || s.IPv6CIDR.Bits() < 44 || s.IPv6CIDR.Bits() > 64 || s.IPv6CIDR.Masked() != s.IPv6CIDR) {
					t.Errorf("accepted %+v", s)
				}
			}
			return err
		}},
}

// checkENI6 checks an ENI's IPv6 side and groups against what the client knows.
func checkENI6(t *testing.T, c *Client, e ENI) {
	t.Helper()
	within := c.cidrsOfSubnet(e.SubnetID).v6
	for _, a := range e.IPv6s {
		if !a.Is6() || a.Is4In6() || !a.IsGlobalUnicast() || within.IsValid() && !within.Contains(a) {
			t.Errorf("accepted %s in %s", a, within)
		}
	}
	for _, p := range e.IPv6Prefixes {
		if p.Bits() != 80 || p.Masked() != p || within.IsValid() && !within.Contains(p.Addr()) {
			t.Errorf("accepted %s in %s", p, within)
		}
	}
	for _, g := range e.SecurityGroups {
		if checkID("", "sg-", g) != nil {
			t.Errorf("accepted the group %q", g)
		}
	}
}

var subnet6 = netip.MustParsePrefix("2001:db8:0:1::/64")

var subnet = netip.MustParsePrefix("10.0.0.0/24")

// checkList checks an assignment's result: no more than requested, no duplicates.
func checkList[T comparable](t *testing.T, list []T, err error, most int, ok func(T) bool) error {
	t.Helper()
	if err != nil && list != nil || len(list) > most {
		t.Errorf("accepted %v with %v, asked for %d", list, err, most)
	}
	for i, v := range list {
		if !ok(v) || slices.Contains(list[:i], v) {
			t.Errorf("accepted %v", list)
		}
	}
	return err
}

// FuzzActions: no answer to any action, decoded by the SDK, makes the client panic or accept
// an impossible value, and each error has a cause.
func FuzzActions(f *testing.F) {
	for i, a := range actions {
		body := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><%[1]sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>0a</requestId>%[2]s</%[1]sResponse>`, a.name, a.answer)
		f.Add(uint8(i), 200, body)
	}
	for i, code := range []string{codeENINotFound, codeAttachmentNotFound, codeSubnetExhausted, codeFragmented, codeInvalidValue, codeAddressLimit, codeAttachLimit, codeUnauthorized, "RequestLimitExceeded", "InternalError", codeSubnetNotFound, codeGroupNotFound, codeInvalidCombination} {
		f.Add(uint8(i), 400, `<Response><Errors><Error><Code>`+code+`</Code><Message>Network interface is currently in use.</Message></Error></Errors><RequestID>0a</RequestID></Response>`)
	}
	f.Add(uint8(5), 500, "<html>")
	f.Add(uint8(9), 200, "<R><nextToken>x</nextToken></R>")
	f.Fuzz(func(t *testing.T, action uint8, status int, body string) {
		c := clientOf(status, body, 1<<20)
		c.remember(ENI{ID: ipam.ENIID("eni-0a"), SubnetID: "subnet-0a"})
		a := actions[int(action)%len(actions)]
		if err := a.call(t.Context(), t, c); err != nil && Cause(err) == "" {
			t.Errorf("%s: no cause for %v", a.name, err)
		}
	})
}

// TestActions shows that FuzzActions' seeds are accepted answers.
func TestActions(t *testing.T) {
	t.Parallel()
	for _, a := range actions {
		c := clientOf(200, `<R>`+a.answer+`</R>`, 1<<20)
		c.remember(ENI{ID: ipam.ENIID("eni-0a"), SubnetID: "subnet-0a"})
		if err := a.call(t.Context(), t, c); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}
