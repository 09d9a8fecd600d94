package vpcapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/capacity/ec2types"
	"cnictl/capacity/limits"
	"cnictl/daemon/ipam"
)

const (
	pageSize        = 200 // resources requested per page
	maxPages        = 50  // of one description; more of them are an error
	maxFilterValues = 200 // EC2's limit per request
)

// DescribeENIs describes ENIs. Ids that EC2 does not know are missing from the answer,
// which is not an error. Without ids it describes the instance's ENIs, whatever the state
// of their attachment. The result is sorted by id, in chunks of 200 requested ids.
//
// It uses a filter instead of ids, because one stale id would fail the whole call.
func (c *Client) DescribeENIs(ctx context.Context, ids []ipam.ENIID) (_ []ENI, err error) {
	defer fail(&err)
	if len(ids) == 0 {
		all, err := c.describeENIs(ctx, filter("attachment.instance-id", c.conf.InstanceID))
		if err != nil {
			return nil, err
		}
		c.described(nil, all)
		return all, nil
	}
	var out []ENI
	for some := range slices.Chunk(ids, maxFilterValues) {
		var values []string
		for _, id := range some {
			values = append(values, string(id))
		}
		enis, err := c.describeENIs(ctx, filter("network-interface-id", values...))
		if err != nil {
			return nil, err
		}
		c.described(some, enis)
		out = append(out, enis...)
	}
	return out, nil
}

// DescribeOrphans describes unattached ENIs created by a daemon on this instance that died
// between two calls. It leaves out ENIs marked no_manage, and those with another program's
// description.
func (c *Client) DescribeOrphans(ctx context.Context) (_ []ENI, err error) {
	defer fail(&err)
	found, err := c.describeENIs(ctx, filter("tag:"+TagInstanceID, c.conf.InstanceID), filter("status", "available"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(e ENI) bool {
		return e.Tags[TagNoManage] == "true" || e.Description != DescriptionPrefix+c.conf.InstanceID
	}), nil
}

// DescribeLeaked describes the VPC's unattached ENIs created by CNI daemons on any node, or
// only on the cluster's nodes if the cluster's name is known. The caller decides which of
// them are leaked.
func (c *Client) DescribeLeaked(ctx context.Context) (_ []ENI, err error) {
	defer fail(&err)
	filters := []types.Filter{filter("tag-key", TagInstanceID), filter("status", "available"), filter("vpc-id", c.conf.VPCID)}
	if c.conf.ClusterName != "" {
		filters = append(filters, filter("tag:"+TagClusterName, c.conf.ClusterName))
	}
	return c.describeENIs(ctx, filters...)
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

func (c *Client) describeENIs(ctx context.Context, filters ...types.Filter) ([]ENI, error) {
	var out []ENI
	in := &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(pageSize)}
	err := pages(func() (*string, error) {
		page, err := call(ctx, c, "DescribeNetworkInterfaces", c.ec2.DescribeNetworkInterfaces, in)
		if err != nil {
			return nil, err
		}
		for i := range page.NetworkInterfaces {
			e, err := parseENI(&page.NetworkInterfaces[i], c.cidrsOfSubnet)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		in.NextToken = page.NextToken
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("describe ENIs: %w", err)
	}
	slices.SortFunc(out, func(a, b ENI) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// pages calls next until it returns no token.
func pages(next func() (*string, error)) error {
	for range maxPages {
		token, err := next()
		if err != nil || aws.ToString(token) == "" {
			return err
		}
	}
	return &AnswerError{"nextToken", "set on page " + strconv.Itoa(maxPages), "an end"}
}

// DescribeInstanceType asks EC2 for the network limits of a type that is not in the
// built-in table. MaxENIs is the default network card's. EC2 does not say whether the type
// can have a trunk.
func (c *Client) DescribeInstanceType(ctx context.Context, name string) (_ limits.Instance, err error) {
	defer fail(&err)
	out, err := call(ctx, c, "DescribeInstanceTypes", c.ec2.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(name)}})
	if err != nil {
		return limits.Instance{}, fmt.Errorf("describe instance type %s: %w", name, err)
	}
	for i := range out.InstanceTypes {
		if string(out.InstanceTypes[i].InstanceType) == name {
			l, err := ec2types.Parse(&out.InstanceTypes[i])
			if err != nil {
				return limits.Instance{}, fmt.Errorf("describe instance type %s: %w", name, err)
			}
			return l, nil
		}
	}
	return limits.Instance{}, fmt.Errorf("describe instance type %s: %w", name, &AnswerError{"instanceTypeSet", strconv.Itoa(len(out.InstanceTypes)) + " types", "the type asked for"})
}
