package fakeaws_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
	"cnictl/daemon/awssdk"
	"cnictl/testenv/aws/fakeaws"
)

// bench is a served world with one m5.large, and an SDK client for it.
type bench struct {
	*fakeaws.World
	t        *testing.T
	server   *fakeaws.Server
	ec2      *ec2.Client
	vpc      fakeaws.VPC
	subnet   fakeaws.Subnet
	instance *fakeaws.Instance
}

func newBench(t *testing.T, o fakeaws.Options) *bench {
	t.Helper()
	w, v := newWorld(t, o)
	n := addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID, IPv6CIDR: netip.MustParsePrefix("2001:db8:0:1::/64"), Tags: map[string]string{"Name": "a"}}, "10.0.0.0/24")
	b := &bench{World: w, t: t, vpc: v, subnet: n, instance: addInstance(t, w, "m5.large", n.ID)}
	var err error
	if b.server, err = fakeaws.NewServer(w, b.instance.ID); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.server.Close(); err != nil {
			t.Error(err)
		}
	})
	b.ec2 = ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: w.Region(), BaseEndpoint: aws.String(b.server.EC2URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	return b
}

func (b *bench) noViolations() {
	b.t.Helper()
	for _, v := range b.Violations() {
		b.t.Errorf("violation: %s", v)
	}
}

func (b *bench) eni(s fakeaws.ENISpec) fakeaws.ENI {
	b.t.Helper()
	if s.SubnetID == "" {
		s.SubnetID = b.subnet.ID
	}
	e, err := b.CreateENI(s)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

// must makes a call that must succeed.
func must[In, Out any](b *bench, do func(context.Context, *In, ...func(*ec2.Options)) (*Out, error), in *In) *Out {
	b.t.Helper()
	out, err := do(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// refused makes a call and returns EC2's error code.
func refused[In, Out any](b *bench, do func(context.Context, *In, ...func(*ec2.Options)) (*Out, error), in *In) string {
	b.t.Helper()
	_, err := do(b.t.Context(), in)
	var e smithy.APIError
	if !errors.As(err, &e) {
		b.t.Fatalf("%v is no answer of EC2", err)
	}
	return e.ErrorCode()
}

func TestEC2_ENILife(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	group := b.AddSecurityGroup(b.vpc.ID, "pods")
	in := &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, Description: aws.String("d & <x>"), Groups: []string{group},
		SecondaryPrivateIpAddressCount: aws.Int32(2), ClientToken: aws.String("once"),
		ConnectionTrackingSpecification: &types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: aws.Int32(400), UdpStreamTimeout: aws.Int32(90), UdpTimeout: aws.Int32(45)},
		TagSpecifications:               []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}}}
	made := must(b, b.ec2.CreateNetworkInterface, in).NetworkInterface
	if again := must(b, b.ec2.CreateNetworkInterface, in).NetworkInterface; *again.NetworkInterfaceId != *made.NetworkInterfaceId {
		t.Errorf("the same client token made %s and %s", *made.NetworkInterfaceId, *again.NetworkInterfaceId)
	}
	id := made.NetworkInterfaceId
	attached := must(b, b.ec2.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: id, InstanceId: &b.instance.ID, DeviceIndex: aws.Int32(1), NetworkCardIndex: aws.Int32(0)})
	must(b, b.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: id,
		Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: attached.AttachmentId, DeleteOnTermination: aws.Bool(true)}})
	must(b, b.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: id, SourceDestCheck: &types.AttributeBooleanValue{Value: aws.Bool(false)}})
	must(b, b.ec2.CreateTags, &ec2.CreateTagsInput{Resources: []string{*id}, Tags: []types.Tag{{Key: aws.String("k2"), Value: aws.String("")}}})

	n := must(b, b.ec2.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{*id}}).NetworkInterfaces[0]
	got := types.NetworkInterface{NetworkInterfaceId: n.NetworkInterfaceId, Description: n.Description, Groups: n.Groups, MacAddress: n.MacAddress, SourceDestCheck: n.SourceDestCheck,
		Status: n.Status, InterfaceType: n.InterfaceType, SubnetId: n.SubnetId, VpcId: n.VpcId, AvailabilityZone: n.AvailabilityZone, PrivateIpAddress: n.PrivateIpAddress,
		PrivateIpAddresses: n.PrivateIpAddresses, TagSet: n.TagSet, Attachment: n.Attachment, ConnectionTrackingConfiguration: n.ConnectionTrackingConfiguration}
	ip := func(a string, primary bool) types.NetworkInterfacePrivateIpAddress {
		return types.NetworkInterfacePrivateIpAddress{PrivateIpAddress: aws.String(a), Primary: aws.Bool(primary)}
	}
	want := types.NetworkInterface{NetworkInterfaceId: aws.String("eni-0fa4e000000000002"), Description: aws.String("d & <x>"), Groups: []types.GroupIdentifier{{GroupId: &group, GroupName: aws.String("pods")}},
		MacAddress: aws.String("02:fa:4e:00:00:02"), SourceDestCheck: aws.Bool(false), Status: "in-use", InterfaceType: "interface", SubnetId: &b.subnet.ID, VpcId: &b.vpc.ID, AvailabilityZone: aws.String("us-west-2a"),
		PrivateIpAddress: aws.String("10.0.0.5"), PrivateIpAddresses: []types.NetworkInterfacePrivateIpAddress{ip("10.0.0.5", true), ip("10.0.0.6", false), ip("10.0.0.7", false)},
		TagSet:                          []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}, {Key: aws.String("k2"), Value: aws.String("")}},
		Attachment:                      &types.NetworkInterfaceAttachment{AttachmentId: attached.AttachmentId, InstanceId: &b.instance.ID, InstanceOwnerId: aws.String("111122223333"), DeviceIndex: aws.Int32(1), NetworkCardIndex: aws.Int32(0), Status: "attached", DeleteOnTermination: aws.Bool(true)},
		ConnectionTrackingConfiguration: &types.ConnectionTrackingConfiguration{TcpEstablishedTimeout: aws.Int32(400), UdpStreamTimeout: aws.Int32(90), UdpTimeout: aws.Int32(45)}}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return strings.Contains(p.String(), "noSmithy") }, cmp.Ignore())); diff != "" {
		t.Errorf("described ENI (-want +got):\n%s", diff)
	}

	instance := must(b, b.ec2.DescribeInstances, &ec2.DescribeInstancesInput{InstanceIds: []string{b.instance.ID}}).Reservations[0].Instances[0]
	var devices []int32
	for _, e := range instance.NetworkInterfaces {
		devices = append(devices, *e.Attachment.DeviceIndex)
	}
	if diff := cmp.Diff([]int32{0, 1}, devices); diff != "" || instance.InstanceType != "m5.large" {
		t.Errorf("instance %s with devices %v", instance.InstanceType, devices)
	}
	if code := refused(b, b.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: id}); code != "InvalidParameterValue" {
		t.Errorf("delete while attached: %s", code)
	}
	must(b, b.ec2.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: attached.AttachmentId})
	must(b, b.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: id})
	if code := refused(b, b.ec2.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{*id}}); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("describe a deleted ENI: %s", code)
	}
	b.noViolations()
}

func TestEC2_Addresses(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	id := &b.instance.PrimaryENI
	ips := must(b, b.ec2.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, SecondaryPrivateIpAddressCount: aws.Int32(2)})
	prefixes := must(b, b.ec2.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4PrefixCount: aws.Int32(1)})
	six := must(b, b.ec2.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6PrefixCount: aws.Int32(1)})
	one := must(b, b.ec2.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6AddressCount: aws.Int32(1)})
	got := []string{*ips.AssignedPrivateIpAddresses[0].PrivateIpAddress, *ips.AssignedPrivateIpAddresses[1].PrivateIpAddress,
		*prefixes.AssignedIpv4Prefixes[0].Ipv4Prefix, six.AssignedIpv6Prefixes[0], one.AssignedIpv6Addresses[0]}
	if diff := cmp.Diff([]string{"10.0.0.5", "10.0.0.6", "10.0.0.16/28", "2001:db8:0:1:1::/80", "2001:db8:0:1::4"}, got); diff != "" {
		t.Errorf("assigned (-want +got):\n%s", diff)
	}
	must(b, b.ec2.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{"10.0.0.5"}})
	must(b, b.ec2.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4Prefixes: []string{"10.0.0.16/28"}})
	gone := must(b, b.ec2.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6Addresses: one.AssignedIpv6Addresses, Ipv6Prefixes: six.AssignedIpv6Prefixes})
	if len(gone.UnassignedIpv6Addresses) != 1 || len(gone.UnassignedIpv6Prefixes) != 1 {
		t.Errorf("unassigned IPv6: %+v", gone)
	}
	e, _ := b.ENI(*id)
	if diff := cmp.Diff([]netip.Prefix{netip.MustParsePrefix("10.0.0.4/32"), netip.MustParsePrefix("10.0.0.6/32")}, e.CIDRs(), compareNetip); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	refusals := []struct {
		in   *ec2.AssignPrivateIpAddressesInput
		want string
	}{
		{&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, SecondaryPrivateIpAddressCount: aws.Int32(9)}, "PrivateIpAddressLimitExceeded"},
		{&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4PrefixCount: aws.Int32(1), SecondaryPrivateIpAddressCount: aws.Int32(1)}, "InvalidParameterCombination"},
		{&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{"10.0.0.6"}}, "InvalidParameterValue"},
		{&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{"10.9.0.6"}}, "InvalidParameterValue"},
		{&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id}, "MissingParameter"},
		{&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: aws.String("eni-0f"), SecondaryPrivateIpAddressCount: aws.Int32(1)}, "InvalidNetworkInterfaceID.NotFound"},
	}
	for _, r := range refusals {
		if got := refused(b, b.ec2.AssignPrivateIpAddresses, r.in); got != r.want {
			t.Errorf("%+v: %s, want %s", r.in, got, r.want)
		}
	}
	if got := refused(b, b.ec2.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{"10.0.0.4"}}); got != "InvalidParameterValue" {
		t.Errorf("unassign the primary address: %s", got)
	}
	b.noViolations()
}

func TestEC2_DescribePages(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	for range 12 {
		b.eni(fakeaws.ENISpec{Tags: map[string]string{"mine": "yes"}, Description: "aws-K8S-x"})
	}
	b.eni(fakeaws.ENISpec{})
	in := &ec2.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5), Filters: []types.Filter{
		{Name: aws.String("tag-key"), Values: []string{"mine"}}, {Name: aws.String("description"), Values: []string{"nothing", "aws-K8S-*"}},
		{Name: aws.String("status"), Values: []string{"available"}}, {Name: aws.String("tag:mine"), Values: []string{"y?s"}}}}
	var sizes []int
	seen := map[string]bool{}
	pager := ec2.NewDescribeNetworkInterfacesPaginator(b.ec2, in)
	for pager.HasMorePages() {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page.NetworkInterfaces))
		for _, n := range page.NetworkInterfaces {
			seen[*n.NetworkInterfaceId] = true
		}
	}
	if diff := cmp.Diff([]int{5, 5, 2}, sizes); diff != "" || len(seen) != 12 {
		t.Errorf("pages of %v with %d different ENIs, want 5, 5, 2 with 12", sizes, len(seen))
	}
	for _, bad := range []*ec2.DescribeNetworkInterfacesInput{{MaxResults: aws.Int32(4)}, {MaxResults: aws.Int32(5), NextToken: aws.String("nonsense")},
		{MaxResults: aws.Int32(5), NetworkInterfaceIds: []string{b.instance.PrimaryENI}}} {
		if code := refused(b, b.ec2.DescribeNetworkInterfaces, bad); !strings.HasPrefix(code, "Invalid") {
			t.Errorf("%+v: %s", bad, code)
		}
	}
	b.noViolations()
}

func TestEC2_DescribeOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{Types: []limits.Instance{{Type: "x9.huge", MaxENIs: 4, IPv4PerENI: 6, IPv6PerENI: 6, Hypervisor: "nitro", VCPUs: 8, MemoryMiB: 1024, Arch: "arm64", Cards: []limits.Card{{Index: 0, MaxENIs: 4}, {Index: 1, MaxENIs: 3}}}}, HideTypes: []string{"m5.large"}})
	addSubnet(t, b.World, fakeaws.SubnetSpec{VPCID: b.vpc.ID, AZ: "us-west-2b"}, "10.0.1.0/24")
	subnets := must(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{b.vpc.ID}}, {Name: aws.String("availability-zone"), Values: []string{"us-west-2a"}}}}).Subnets
	if len(subnets) != 1 || *subnets[0].CidrBlock != "10.0.0.0/24" || *subnets[0].AvailableIpAddressCount != 250 || *subnets[0].Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock != "2001:db8:0:1::/64" {
		t.Errorf("subnets: %+v", subnets)
	}
	groups := must(b, b.ec2.DescribeSecurityGroups, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{b.vpc.ID}}}}).SecurityGroups
	if len(groups) != 1 || *groups[0].GroupName != "default" {
		t.Errorf("groups: %+v", groups)
	}
	tags := must(b, b.ec2.DescribeTags, &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("resource-id"), Values: []string{b.subnet.ID}}}}).Tags
	if len(tags) != 1 || *tags[0].Key != "Name" || tags[0].ResourceType != "subnet" {
		t.Errorf("tags: %+v", tags)
	}
	kind := must(b, b.ec2.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"x9.huge"}}).InstanceTypes[0]
	if n := kind.NetworkInfo; *n.MaximumNetworkInterfaces != 7 || len(n.NetworkCards) != 2 || *n.Ipv4AddressesPerInterface != 6 || kind.Hypervisor != "nitro" || *kind.MemoryInfo.SizeInMiB != 1024 || kind.ProcessorInfo.SupportedArchitectures[0] != "arm64" {
		t.Errorf("type: %+v", kind)
	}
	if code := refused(b, b.ec2.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large"}}); code != "InvalidInstanceType" {
		t.Errorf("hidden type: %s", code)
	}
	pager, all := ec2.NewDescribeInstanceTypesPaginator(b.ec2, &ec2.DescribeInstanceTypesInput{}), 0
	for pager.HasMorePages() {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all += len(page.InstanceTypes)
	}
	if known := len(slices.Collect(limits.Types())); all != known+1-1 {
		t.Errorf("%d types, want the table's %d with one added and one hidden", all, known)
	}
	b.noViolations()
}

// Anything that the servers do not know is refused by name and recorded.
func TestEC2_UnknownIsLoud(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	if code := refused(b, b.ec2.DescribeVpcs, &ec2.DescribeVpcsInput{}); code != "InvalidAction" {
		t.Errorf("unknown action: %s", code)
	}
	if code := refused(b, b.ec2.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, EnablePrimaryIpv6: aws.Bool(true)}); code != "UnknownParameter" {
		t.Errorf("unknown parameter: %s", code)
	}
	if code := refused(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("colour"), Values: []string{"red"}}}}); code != "InvalidParameterValue" {
		t.Errorf("unknown filter: %s", code)
	}
	all := strings.Join(b.Violations(), "\n")
	for _, name := range []string{"DescribeVpcs", "CreateNetworkInterface: unknown parameter EnablePrimaryIpv6", "DescribeSubnets: unknown filter colour"} {
		if !strings.Contains(all, name) {
			t.Errorf("violations do not name %s:\n%s", name, all)
		}
	}
	if n := len(b.ENIs()); n != 1 {
		t.Errorf("%d ENIs: a refused call had an effect", n)
	}
}

func TestEC2_Permissions(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{Allow: []string{"DescribeSubnets"}})
	must(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{})
	if code := refused(b, b.ec2.CreateTags, &ec2.CreateTagsInput{Resources: []string{b.subnet.ID}, Tags: []types.Tag{{Key: aws.String("k")}}}); code != "UnauthorizedOperation" {
		t.Errorf("not allowed: %s", code)
	}
	b.AllowAll()
	if code := refused(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{DryRun: aws.Bool(true)}); code != "DryRunOperation" {
		t.Errorf("dry run: %s", code)
	}
	elsewhere := ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: "eu-central-1", BaseEndpoint: aws.String(b.server.EC2URL),
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	if code := refused(b, elsewhere.DescribeSubnets, &ec2.DescribeSubnetsInput{}); code != "AuthFailure" {
		t.Errorf("signed for another region: %s", code)
	}
	resp, err := http.PostForm(b.server.EC2URL, map[string][]string{"Action": {"DescribeSubnets"}, "Version": {"2016-11-15"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("unsigned: %s", resp.Status)
	}
	b.noViolations()
}
