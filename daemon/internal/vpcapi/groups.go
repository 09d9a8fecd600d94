package vpcapi

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
)

const (
	maxGroups     = 16 // security groups of one ENI: EC2's highest quota
	maxReadGroups = 64 // … and the most that an answer may list, should the quota grow
)

// SameGroups reports whether two lists name the same security groups, ignoring order and
// duplicates.
func SameGroups(a, b []string) bool { return slices.Equal(sortedGroups(a), sortedGroups(b)) }

func sortedGroups(groups []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(groups)))
}

// SetSecurityGroups replaces an ENI's security groups. The caller checks beforehand, with
// SameGroups, whether they differ.
func (c *Client) SetSecurityGroups(ctx context.Context, id ipam.ENIID, groups []string) (err error) {
	defer fail(&err)
	groups = sortedGroups(groups)
	if err := checkGroups(groups); err != nil {
		return fmt.Errorf("set security groups of ENI %s: %w", id, err)
	}
	_, err = call(ctx, c, "ModifyNetworkInterfaceAttribute", c.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: aws.String(string(id)), Groups: groups,
	})
	if err != nil {
		return fmt.Errorf("set security groups of ENI %s: %w", id, err)
	}
	return nil
}

// GroupsError means that a list of security groups is invalid.
type GroupsError struct {
	Count int    // length of the list
	ID    string // the invalid member; "": the list is too short or too long
}

func (e *GroupsError) Error() string {
	if e.ID != "" {
		return fmt.Sprintf("%.100q is not a security group: want an ID such as sg-0123456789abcdef0", e.ID)
	}
	return fmt.Sprintf("%d security groups: an ENI takes 1 to %d", e.Count, maxGroups)
}

func checkGroups(groups []string) error {
	if len(groups) == 0 || len(groups) > maxGroups {
		return &GroupsError{Count: len(groups)}
	}
	for _, g := range groups {
		if checkID("", "sg-", g) != nil {
			return &GroupsError{Count: len(groups), ID: g}
		}
	}
	return nil
}

// parseGroups reads the groups of a described ENI.
func parseGroups(in []types.GroupIdentifier) ([]string, error) {
	if len(in) > maxReadGroups {
		return nil, &AnswerError{"groupSet", fmt.Sprintf("%d members", len(in)), fmt.Sprintf("at most %d", maxReadGroups)}
	}
	var out []string
	for _, g := range in {
		id := aws.ToString(g.GroupId)
		if err := checkID("groupSet", "sg-", id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}
