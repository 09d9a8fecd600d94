package vpcapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Tags of the ENIs that the daemon creates: upstream's, so that each recognises the other's.
const (
	TagCreatedAt   = resync.TagCreatedAt  // RFC 3339
	TagInstanceID  = resync.TagInstanceID // the creator
	TagNoManage    = resync.TagNoManage   // "true": hands off
	TagClusterName = resync.TagClusterName
	TagOwner       = "eks:eni:owner"
	Owner          = "amazon-vpc-cni"
	// DescriptionPrefix is followed by the instance id.
	DescriptionPrefix = resync.DescriptionPrefix

	reservedTagPart = "k8s.amazonaws.com"
)

// UserTags returns the ADDITIONAL_ENI_TAGS to write, and the keys left out because they are
// reserved for the CNI.
func UserTags(additional map[string]string) (kept map[string]string, dropped []string) {
	kept = make(map[string]string)
	for _, k := range slices.Sorted(maps.Keys(additional)) {
		if strings.Contains(k, reservedTagPart) {
			dropped = append(dropped, k)
			continue
		}
		kept[k] = additional[k]
	}
	return kept, dropped
}

// wantedTags are the tags of every managed ENI except createdAt.
func (c *Client) wantedTags() map[string]string {
	tags := map[string]string{TagInstanceID: c.conf.InstanceID}
	if c.conf.ClusterName != "" {
		tags[TagClusterName] = c.conf.ClusterName
		tags[TagOwner] = Owner
	}
	kept, _ := UserTags(c.conf.AdditionalTags)
	maps.Copy(tags, kept)
	return tags
}

func (c *Client) creationTags(now time.Time) map[string]string {
	tags := map[string]string{TagCreatedAt: now.UTC().Format(time.RFC3339)}
	maps.Copy(tags, c.wantedTags())
	return tags
}

func sdkTags(tags map[string]string) []types.Tag {
	var out []types.Tag
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

const maxTags = 256 // of one resource in an answer; EC2 allows 50 besides its own

func parseTags(in []types.Tag) (map[string]string, error) {
	if len(in) > maxTags {
		return nil, &AnswerError{"tagSet", fmt.Sprintf("%d members", len(in)), fmt.Sprintf("at most %d", maxTags)}
	}
	out := make(map[string]string, len(in))
	for _, t := range in {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out, nil
}

// TagENI writes a managed ENI's tags that are missing or have another value. If there are
// none, it makes no call.
func (c *Client) TagENI(ctx context.Context, id ipam.ENIID, have map[string]string) (err error) {
	defer fail(&err)
	missing := c.wantedTags()
	maps.DeleteFunc(missing, func(k, v string) bool {
		is, there := have[k]
		return there && is == v
	})
	if len(missing) == 0 {
		return nil
	}
	_, err = call(ctx, c, "CreateTags", c.ec2.CreateTags, &ec2.CreateTagsInput{Resources: []string{string(id)}, Tags: sdkTags(missing)})
	if err != nil {
		return fmt.Errorf("tag ENI %s: %w", id, err)
	}
	return nil
}

// TagCreated writes the creation time of an ENI that has none, or an invalid one.
func (c *Client) TagCreated(ctx context.Context, id ipam.ENIID, at time.Time) (err error) {
	defer fail(&err)
	_, err = call(ctx, c, "CreateTags", c.ec2.CreateTags, &ec2.CreateTagsInput{
		Resources: []string{string(id)}, Tags: sdkTags(map[string]string{TagCreatedAt: at.UTC().Format(time.RFC3339)}),
	})
	if err != nil {
		return fmt.Errorf("tag ENI %s: %w", id, err)
	}
	return nil
}
