package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

// DefaultCluster names a cluster whose name cannot be found.
const DefaultCluster = "k8s-cluster"

// clusterTags are the instance tags that may name its cluster, the best first.
var clusterTags = []string{"eks:cluster-name", "CLUSTER_ID", "Name"}

var regionForm = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+){1,5}$`)

// Region returns the given region, or the instance's if given is empty.
func Region(ctx context.Context, cfg aws.Config, given string) (string, error) {
	region := given
	if region == "" {
		out, err := imds.NewFromConfig(cfg).GetRegion(ctx, nil)
		if err != nil {
			return "", fmt.Errorf("read the region from instance metadata: %w; set AWS_REGION, or let pods reach instance metadata (hop limit 2)", err)
		}
		region = out.Region
	}
	// The region becomes part of a host name.
	if !regionForm.MatchString(region) {
		return "", fmt.Errorf("invalid region %q; set AWS_REGION to one such as us-west-2", region)
	}
	return region, nil
}

// CheckCluster rejects names that CloudWatch does not accept as a dimension.
func CheckCluster(name string) error {
	visible := strings.ContainsFunc(name, func(r rune) bool { return r > ' ' })
	strange := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
	if !visible || strange || len(name) > 1024 {
		return fmt.Errorf("%q is not a valid CloudWatch dimension value: it must be at most 1,024 printable ASCII characters", name)
	}
	return nil
}

// Cluster returns the cluster's name according to the helper's own instance. source is the
// tag it came from, or why there was none.
func Cluster(ctx context.Context, cfg aws.Config, ec2Endpoint string) (name, source string, err error) {
	instance, err := instanceID(ctx, cfg)
	if err != nil {
		return "", "", fmt.Errorf("read the instance ID from instance metadata: %w; set AWS_CLUSTER_ID, or let pods reach instance metadata (hop limit 2)", err)
	}
	tags, err := instanceTags(ctx, cfg, ec2Endpoint, instance)
	if denied(err) {
		return DefaultCluster, "the IAM role lacks ec2:DescribeTags; set AWS_CLUSTER_ID, or allow it", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("describe tags of %s: %w; setting AWS_CLUSTER_ID makes this unnecessary", instance, err)
	}
	for _, key := range clusterTags {
		if v := tags[key]; v != "" && CheckCluster(v) == nil {
			return v, "tag " + key + " of " + instance, nil
		}
	}
	return DefaultCluster, instance + " has no tag that names the cluster; set AWS_CLUSTER_ID", nil
}

var instanceForm = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

func instanceID(ctx context.Context, cfg aws.Config) (string, error) {
	out, err := imds.NewFromConfig(cfg).GetMetadata(ctx, &imds.GetMetadataInput{Path: "instance-id"})
	if err != nil {
		return "", err
	}
	defer out.Content.Close()
	id, err := io.ReadAll(out.Content)
	if err != nil {
		return "", err
	}
	if !instanceForm.Match(id) {
		return "", fmt.Errorf("it says %.40q, which is not an instance ID", id)
	}
	return string(id), nil
}

// instanceTags returns the tags that may name a cluster. Three keys fit on one page.
func instanceTags(ctx context.Context, cfg aws.Config, endpoint, instance string) (map[string]string, error) {
	client := ec2.NewFromConfig(cfg, func(o *ec2.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	})
	out, err := client.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{
		{Name: aws.String("resource-id"), Values: []string{instance}},
		{Name: aws.String("key"), Values: clusterTags},
	}})
	if err != nil {
		return nil, err
	}
	tags := make(map[string]string, len(out.Tags))
	for _, t := range out.Tags {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags, nil
}

func denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "UnauthorizedOperation" || api.ErrorCode() == "AccessDenied")
}
