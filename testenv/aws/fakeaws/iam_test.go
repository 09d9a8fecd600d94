package fakeaws_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/testenv/aws/fakeaws"
)

const eniPolicy = `{"Version":"2012-10-17","Statement":[
	{"Effect":"Allow","Action":["ec2:CreateNetworkInterface","ec2:AttachNetworkInterface","ec2:DescribeNetworkInterfaces"],"Resource":"*"},
	{"Effect":"Allow","Action":["ec2:CreateTags"],"Resource":["arn:aws:ec2:*:*:network-interface/*"]}]}`

func tagged(kv ...string) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{{Key: &kv[0], Value: &kv[1]}}}}
}

// An instance's policy applies to its calls, for each resource; used and refused actions are
// recorded.
func TestIAM_Policy(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	defer b.noViolations()
	if err := b.SetPolicy(b.instance.ID, eniPolicy); err != nil {
		t.Fatal(err)
	}
	made := must(b, b.ec2.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, TagSpecifications: tagged("a", "b")}).NetworkInterface
	tag := func(id string) *ec2.CreateTagsInput {
		return &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}
	}
	must(b, b.ec2.CreateTags, tag(*made.NetworkInterfaceId))
	if code := refused(b, b.ec2.CreateTags, tag(b.instance.ID)); code != "UnauthorizedOperation" {
		t.Errorf("tags of the instance: %s", code)
	}
	_, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	for _, want := range []string{"UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/node-role/" + b.instance.ID,
		"is not authorized to perform: ec2:DescribeSubnets because no identity-based policy allows", "Encoded authorization failure message: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal is %v, want it to say %q", err, want)
		}
	}
	want := []string{"ec2:CreateNetworkInterface", "ec2:CreateTags", "ec2:DescribeSubnets"}
	if got := b.ActionsUsed(b.instance.ID); !slices.Equal(got, want) {
		t.Errorf("used %q, want %q", got, want)
	}
	if got, want := b.ActionsDenied(b.instance.ID), []string{"ec2:CreateTags", "ec2:DescribeSubnets"}; !slices.Equal(got, want) {
		t.Errorf("denied %q, want %q", got, want)
	}
	if err := b.SetPolicy(b.instance.ID, ""); err != nil {
		t.Fatal(err)
	}
	must(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{})
}

// Each action is checked against the resources that it touches.
func TestIAM_Resources(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:ec2:us-west-2:111122223333:"
	for _, row := range []struct {
		name  string
		allow string // of the resources
		call  func(b *bench, e fakeaws.ENI) (code string)
		code  string
	}{
		{"create with tags needs CreateTags", `"ec2:CreateNetworkInterface"`, func(b *bench, _ fakeaws.ENI) string {
			return refused(b, b.ec2.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, TagSpecifications: tagged("a", "b")})
		}, "UnauthorizedOperation"},
		{"another ENI", `"ec2:DeleteNetworkInterface","Resource":"` + arn + `network-interface/eni-0"`, func(b *bench, e fakeaws.ENI) string {
			return refused(b, b.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &e.ID})
		}, "UnauthorizedOperation"},
		{"attach needs the instance too", `"ec2:AttachNetworkInterface","Resource":"` + arn + `network-interface/*"`, func(b *bench, e fakeaws.ENI) string {
			return refused(b, b.ec2.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &e.ID, InstanceId: &b.instance.ID, DeviceIndex: aws.Int32(1)})
		}, "UnauthorizedOperation"},
		{"an attachment that is not there", `"ec2:DetachNetworkInterface"`, func(b *bench, _ fakeaws.ENI) string {
			return refused(b, b.ec2.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: aws.String("eni-attach-0")})
		}, "InvalidAttachmentID.NotFound"},
		{"groups of another ENI", `"ec2:ModifyNetworkInterfaceAttribute","Resource":["` + arn + `network-interface/*","` + arn + `security-group/sg-0"]`, func(b *bench, e fakeaws.ENI) string {
			return refused(b, b.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &e.ID, Groups: e.SecurityGroups})
		}, "UnauthorizedOperation"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{})
			allow := row.allow
			if !strings.Contains(allow, "Resource") {
				allow += `,"Resource":"*"`
			}
			if err := b.SetPolicy("", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":`+allow+`}]}`); err != nil {
				t.Fatal(err)
			}
			if code := row.call(b, b.eni(fakeaws.ENISpec{})); code != row.code {
				t.Errorf("%s, want %s", code, row.code)
			}
		})
	}
}
