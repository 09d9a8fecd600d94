package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"cnictl/daemon/awssdk"
	"cnictl/daemon/iam"
	"cnictl/deploy"
	"cnictl/testenv/aws/fakeaws"
)

const (
	clusterTag = "cluster.k8s.amazonaws.com/name"
	ownCluster = "prod"
)

// takeover is an account with a node of cluster prod that is taken over: its role has a scoped
// policy, and its caller makes whatever calls it likes.
type takeover struct {
	t     *testing.T
	world *fakeaws.World
	ec2   *ec2.Client

	node, stage        *fakeaws.Instance // of prod, and of another cluster in the same VPC
	subnet, elsewhere  fakeaws.Subnet    // elsewhere is in another VPC
	group, groupBeyond string            // groupBeyond is of that VPC
	own, free          string            // interfaces of prod: attached to the node, and unattached
	ipv6               bool
}

func takeOver(t *testing.T, policy string, edit func(document string) string) *takeover {
	t.Helper()
	w := fakeaws.NewWorld(fakeaws.Options{})
	t.Cleanup(w.Close)
	a := &takeover{t: t, world: w, ipv6: strings.Contains(policy, "ipv6")}
	v, beyond := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/56")), w.AddVPC(netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("2001:db8:9::/56"))
	a.subnet = a.addSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/24"), IPv6CIDR: netip.MustParsePrefix("2001:db8::/64")})
	a.elsewhere = a.addSubnet(fakeaws.SubnetSpec{VPCID: beyond.ID, CIDR: netip.MustParsePrefix("10.9.0.0/24"), IPv6CIDR: netip.MustParsePrefix("2001:db8:9::/64")})
	a.group, a.groupBeyond = w.AddSecurityGroup(v.ID, "database"), w.AddSecurityGroup(beyond.ID, "database")
	a.node = a.instance(ownCluster)
	a.stage = a.instance("stage")
	a.own = a.attached(a.node, 1, a.eni(a.subnet, ownCluster))
	a.free = a.eni(a.subnet, ownCluster)
	document, err := deploy.IAM(policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetPolicy("", edit(w.Filled(document, ownCluster, v.ID))); err != nil {
		t.Fatal(err)
	}
	server, err := fakeaws.NewServer(w, a.node.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range w.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	a.ec2 = ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: w.Region(), BaseEndpoint: &server.EC2URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	return a
}

func (a *takeover) addSubnet(s fakeaws.SubnetSpec) fakeaws.Subnet {
	a.t.Helper()
	out, err := a.world.AddSubnet(s)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

func (a *takeover) instance(cluster string) *fakeaws.Instance {
	a.t.Helper()
	i, err := a.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.xlarge", SubnetID: a.subnet.ID, Tags: map[string]string{"kubernetes.io/cluster/" + cluster: "owned"}})
	if err != nil {
		a.t.Fatal(err)
	}
	return i
}

// eni makes an interface, with the tag of a cluster unless that is empty.
func (a *takeover) eni(subnet fakeaws.Subnet, cluster string) string {
	a.t.Helper()
	tags := map[string]string{}
	if cluster != "" {
		tags[clusterTag] = cluster
	}
	return a.tagged(subnet, tags)
}

func (a *takeover) tagged(subnet fakeaws.Subnet, tags map[string]string) string {
	a.t.Helper()
	e, err := a.world.CreateENI(fakeaws.ENISpec{SubnetID: subnet.ID, IPs: 1, IPv6Prefixes: 1, Tags: tags})
	if err != nil {
		a.t.Fatal(err)
	}
	return e.ID
}

func (a *takeover) attached(to *fakeaws.Instance, device int, eni string) string {
	a.t.Helper()
	if _, err := a.world.AttachENI(fakeaws.AttachSpec{ENIID: eni, InstanceID: to.ID, Device: device}); err != nil {
		a.t.Fatal(err)
	}
	return eni
}

// call makes a call and returns EC2's error code, empty if it succeeded.
func call[In, Out any](a *takeover, do func(context.Context, *In, ...func(*ec2.Options)) (*Out, error), in *In) string {
	a.t.Helper()
	_, err := do(a.t.Context(), in)
	var e smithy.APIError
	if err != nil && !errors.As(err, &e) {
		a.t.Fatalf("%v is no answer of EC2", err)
	}
	if e == nil {
		return ""
	}
	return e.ErrorCode()
}

func (a *takeover) tag(id, key, value string) string {
	a.t.Helper()
	return call(a, a.ec2.CreateTags, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: &key, Value: &value}}})
}

func (a *takeover) setGroups(eni string, groups ...string) string {
	a.t.Helper()
	return call(a, a.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni, Groups: groups})
}

func (a *takeover) checkSource(eni string, on bool) string {
	a.t.Helper()
	return call(a, a.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni, SourceDestCheck: &types.AttributeBooleanValue{Value: &on}})
}

func (a *takeover) attach(eni string, to *fakeaws.Instance) string {
	a.t.Helper()
	device := int32(2)
	return call(a, a.ec2.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &eni, InstanceId: &to.ID, DeviceIndex: &device})
}

func (a *takeover) detach(eni string) string {
	a.t.Helper()
	e, _ := a.world.ENI(eni)
	return call(a, a.ec2.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: &e.Attachment.ID})
}

func (a *takeover) create(subnet fakeaws.Subnet, group string, tags ...types.Tag) string {
	a.t.Helper()
	in := &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID, Groups: []string{group}}
	if len(tags) > 0 {
		in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}}
	}
	return call(a, a.ec2.CreateNetworkInterface, in)
}

func ofCluster(name string) types.Tag { return aTag(clusterTag, name) }

func aTag(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }

// Tags of the VPC resource controller's interfaces. It believes a VLAN ID on any interface that names
// one of its trunks.
const (
	ownerTag = "eks:eni:owner"
	vlanTag  = "vpcresources.k8s.aws/vlan-id"
	trunkTag = "vpcresources.k8s.aws/trunk-eni-id"
)

// ofController returns the tags of a trunk ENI, or of a branch ENI of a trunk.
func ofController(cluster, instance, trunk string) map[string]string {
	tags := map[string]string{"node.k8s.amazonaws.com/instance_id": instance, ownerTag: "eks-vpc-resource-controller", "kubernetes.io/cluster/" + cluster: "owned"}
	if trunk != "" {
		tags[vlanTag], tags[trunkTag] = "1", trunk
	}
	return tags
}

// change tries everything that a policy allows on the interfaces of its own cluster.
func (a *takeover) change(eni string) (tried map[string]string) {
	a.t.Helper()
	e, _ := a.world.ENI(eni)
	tried = map[string]string{"ModifyNetworkInterfaceAttribute": a.setGroups(eni, e.SecurityGroups...)}
	one, ip, cidr := int32(1), "", ""
	if len(e.SecondaryIPs) > 0 {
		ip, cidr = e.SecondaryIPs[0].String(), e.IPv6Prefixes[0].String()
	}
	if a.ipv6 {
		tried["AssignIpv6Addresses"] = call(a, a.ec2.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: &eni, Ipv6PrefixCount: &one})
		tried["UnassignIpv6Addresses"] = call(a, a.ec2.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{NetworkInterfaceId: &eni, Ipv6Prefixes: []string{cidr}})
	} else {
		tried["AssignPrivateIpAddresses"] = call(a, a.ec2.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &eni, SecondaryPrivateIpAddressCount: &one})
		tried["UnassignPrivateIpAddresses"] = call(a, a.ec2.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &eni, PrivateIpAddresses: []string{ip}})
	}
	if e.Attachment.ID != "" {
		tried["DetachNetworkInterface"] = a.detach(eni)
	} else {
		tried["AttachNetworkInterface"] = a.attach(eni, a.node)
		if tried["AttachNetworkInterface"] == "" {
			tried["DetachNetworkInterface"] = a.detach(eni)
		}
	}
	tried["DeleteNetworkInterface"] = call(a, a.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &eni})
	return tried
}

const unauthorised = "UnauthorizedOperation"

// scopes runs a test with the scoped policy of each address family.
func scopes(t *testing.T, test func(t *testing.T, policy string)) {
	for _, policy := range []string{"aws-node-ipv4-scoped", "aws-node-ipv6-scoped"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			test(t, policy)
		})
	}
}

func asShipped(document string) string { return document }

// TestIAM_ScopeHolds: with a scoped policy, a node that is taken over changes no interface of
// another cluster or VPC, whatever it tags first. Each action of the policy that changes anything
// is refused at least once.
func TestIAM_ScopeHolds(t *testing.T) {
	t.Parallel()
	scopes(t, func(t *testing.T, policy string) {
		a := takeOver(t, policy, asShipped)
		trunk := a.attached(a.stage, 3, a.tagged(a.subnet, ofController("stage", a.stage.ID, "")))
		for name, victim := range map[string]string{
			"a trunk ENI of another cluster":        trunk,
			"a branch ENI of another cluster":       a.tagged(a.subnet, ofController("stage", a.stage.ID, trunk)),
			"a branch ENI of this cluster":          a.tagged(a.subnet, ofController(ownCluster, a.node.ID, "eni-1")),
			"of another cluster, attached":          a.attached(a.stage, 1, a.eni(a.subnet, "stage")),
			"of another cluster, free":              a.eni(a.subnet, "stage"),
			"of another VPC":                        a.eni(a.elsewhere, ""),
			"of another VPC's cluster":              a.eni(a.elsewhere, "stage"),
			"of another VPC's cluster of this name": a.eni(a.elsewhere, ownCluster),
		} {
			before, _ := a.world.ENI(victim)
			if code := a.tag(victim, clusterTag, ownCluster); code != unauthorised {
				t.Errorf("%s: the tag of the own cluster: %q", name, code)
			}
			for _, key := range []string{"any", ownerTag, vlanTag} {
				if code := a.tag(victim, key, "999"); code != unauthorised {
					t.Errorf("%s: the tag %s: %q", name, key, code)
				}
			}
			for action, code := range a.change(victim) {
				if code != unauthorised {
					t.Errorf("%s: %s: %q", name, action, code)
				}
			}
			if after, _ := a.world.ENI(victim); !reflect.DeepEqual(before, after) {
				t.Errorf("%s: it was\n%+v\nand is\n%+v", name, before, after)
			}
		}
		lent := a.attached(a.stage, 2, a.eni(a.subnet, ownCluster))
		plain := ofCluster(ownCluster)
		for name, code := range map[string]string{
			"create an untagged interface":                 a.create(a.subnet, a.group),
			"create an interface of another cluster":       a.create(a.subnet, a.group, ofCluster("stage")),
			"create an interface in another VPC":           a.create(a.elsewhere, a.groupBeyond, plain),
			"create an interface with another VPC's group": a.create(a.subnet, a.groupBeyond, plain),
			"set another VPC's group":                      a.setGroups(a.own, a.groupBeyond),
			"give an interface to another cluster":         a.tag(a.own, clusterTag, "stage"),
			"attach to another cluster's instance":         a.attach(a.free, a.stage),
			"detach from another cluster's instance":       a.detach(lent),
			"create one with a VLAN ID":                    a.create(a.subnet, a.group, plain, aTag(vlanTag, "999"), aTag(trunkTag, trunk)),
			"create one of the resource controller":        a.create(a.subnet, a.group, plain, aTag(ownerTag, "eks-vpc-resource-controller")),
			"give an own interface a VLAN ID":              a.tag(a.own, vlanTag, "999"),
			"give an own interface a trunk":                a.tag(a.own, trunkTag, trunk),
			"give an untagged interface a trunk":           a.tag(a.eni(a.subnet, ""), trunkTag, trunk),
			"give an own interface to the controller":      a.tag(a.own, ownerTag, "eks-vpc-resource-controller"),
			"send with any address":                        a.checkSource(a.own, false),
			"tag an instance":                              a.tag(a.stage.ID, "kubernetes.io/cluster/"+ownCluster, "owned"),
			"tag a subnet":                                 a.tag(a.subnet.ID, clusterTag, ownCluster),
			"tag a group":                                  a.tag(a.group, clusterTag, ownCluster),
		} {
			if code != unauthorised {
				t.Errorf("%s: %q", name, code)
			}
		}
		var changing []string
		for _, action := range actionsOf(iam.Policies()[policy]) {
			if !strings.HasPrefix(action, "ec2:Describe") {
				changing = append(changing, action)
			}
		}
		if denied := a.world.ActionsDenied(a.node.ID); !slices.Equal(denied, changing) {
			t.Errorf("refused were\n%q\nof\n%q", denied, changing)
		}
	})
}

// TestIAM_ScopeLeaves: what the scoped policies allow, for the daemon and so for who takes it over:
// all of docs/security.md's list.
func TestIAM_ScopeLeaves(t *testing.T) {
	t.Parallel()
	scopes(t, func(t *testing.T, policy string) {
		a := takeOver(t, policy, asShipped)
		if code := a.create(a.subnet, a.group, ofCluster(ownCluster)); code != "" {
			t.Errorf("create: %s", code)
		}
		for name, eni := range map[string]string{"attached": a.own, "free": a.free} {
			for action, code := range a.change(eni) {
				if busy := name == "attached" && action == "DeleteNetworkInterface" && code == "InvalidParameterValue"; code != "" && !busy {
					t.Errorf("%s: %s: %s", name, action, code)
				}
			}
		}
		// An interface of the VPC without the tag: claimed, then changed, also its groups.
		other := a.eni(a.subnet, "")
		for action, code := range a.change(other) {
			if code != unauthorised {
				t.Errorf("before the tag: %s: %q", action, code)
			}
		}
		if code := a.tag(other, clusterTag, ownCluster); code != "" {
			t.Errorf("claim an untagged interface: %s", code)
		}
		if code := a.setGroups(other, a.group); code != "" {
			t.Errorf("set any group of the VPC: %s", code)
		}
		if code := a.tag(other, "team", "database"); code != "" {
			t.Errorf("a tag that others go by: %s", code)
		}
		if a.ipv6 {
			return
		}
		// A secondary address of an interface of another cluster, in a subnet where this one has no
		// interface: it makes one there.
		far := a.addSubnet(fakeaws.SubnetSpec{VPCID: a.subnet.VPCID, CIDR: netip.MustParsePrefix("10.0.7.0/24")})
		made, err := a.ec2.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: &far.ID, Groups: []string{a.group},
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{ofCluster(ownCluster)}}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.world.CreateENI(fakeaws.ENISpec{SubnetID: far.ID, IPs: 1, Tags: map[string]string{clusterTag: "stage"}})
		if err != nil {
			t.Fatal(err)
		}
		take := true
		if code := call(a, a.ec2.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{
			NetworkInterfaceId: made.NetworkInterface.NetworkInterfaceId, PrivateIpAddresses: []string{s.SecondaryIPs[0].String()}, AllowReassignment: &take,
		}); code != "" {
			t.Errorf("reassign an address: %s", code)
		}
	})
}

// TestIAM_ScopeStrict: where a launch template gives primary interfaces the cluster's tag, the edit
// of docs/security.md keeps untagged interfaces out of reach too.
func TestIAM_ScopeStrict(t *testing.T) {
	t.Parallel()
	scopes(t, func(t *testing.T, policy string) {
		a := takeOver(t, policy, func(document string) string {
			var p iam.Policy
			if err := json.Unmarshal([]byte(document), &p); err != nil {
				t.Fatal(err)
			}
			const loose, strict, key = "StringEqualsIfExists", "StringEquals", "aws:ResourceTag/" + clusterTag
			for _, s := range p.Statement {
				if value, ok := s.Condition[loose][key]; ok {
					delete(s.Condition[loose], key)
					s.Condition[strict] = map[string]string{key: value}
				}
			}
			out, err := p.JSON()
			if err != nil {
				t.Fatal(err)
			}
			return string(out)
		})
		if code := a.tag(a.eni(a.subnet, ""), clusterTag, ownCluster); code != unauthorised {
			t.Errorf("claim an untagged interface: %q", code)
		}
		if code := a.tag(a.own, "node.k8s.amazonaws.com/instance_id", a.node.ID); code != "" {
			t.Errorf("tag an interface of the cluster: %s", code)
		}
		if code := a.create(a.subnet, a.group, ofCluster(ownCluster)); code != "" {
			t.Errorf("create: %s", code)
		}
	})
}
